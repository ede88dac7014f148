"""The page of problem codes is that of the errors."""

import re
from pathlib import Path

from tests.builders.api import unserved_app
from tests.builders.problem_page import problem_page

PAGE = Path("docs/problems.md")


def test_the_page_lists_every_code_with_its_status():
    assert PAGE.read_text() == problem_page(), "python -m tests.builders.problem_page > docs/problems.md"


def test_every_code_of_an_example_is_on_the_page():
    document = unserved_app().openapi()
    known = set(re.findall(r"^\| `([a-z0-9-]+)`", PAGE.read_text(), re.MULTILINE))
    examples = {
        answer["content"]["application/problem+json"]["example"]["code"]
        for verbs in document["paths"].values()
        for operation in verbs.values()
        for status, answer in operation["responses"].items()
        if status >= "4"
    }
    assert examples - known == set()
