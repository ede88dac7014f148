"""The paths that documents name with a method are paths of the API."""

import re

import pytest

from house import ROOT, project_files
from tests.builders.api import unserved_app

DOCUMENTS = [
    path
    for path in project_files(".md")
    if path.name != "CHANGELOG.md" and not {"tests", "adr"} & set(path.relative_to(ROOT).parts)
]
NAMED = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE) (/v1/[\w{}/.-]*\w\}?)")
PART = re.compile(r"\{[^}]*\}")


def shape(method: str, path: str) -> tuple[str, str]:
    """A path whose parameters have no names."""
    return method, PART.sub("{}", path)


@pytest.fixture(scope="module")
def routes():
    document = unserved_app().openapi()
    return {shape(method.upper(), path) for path, verbs in document["paths"].items() for method in verbs}


def unknown(text, routes):
    return [" ".join(named) for named in NAMED.findall(text) if shape(*named) not in routes]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_paths_exist(document, routes):
    assert unknown(document.read_text(encoding="utf-8"), routes) == []


def test_a_path_that_does_not_exist_is_seen(routes):
    text = "`POST /v1/streams/{name}/trace-ends`, `POST /v1/events?stream=s`, `GET /v1/alerts/{id}`."
    assert unknown(text, routes) == ["POST /v1/streams/{name}/trace-ends"]
