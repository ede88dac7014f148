"""Each decision record has its number, its four headings and one page."""

import re

import pytest

from house import ROOT

FOLDER = ROOT / "docs" / "adr"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
HEADINGS = ["Context", "Decision", "Consequences", "Alternatives"]
ONE_PAGE = 80


def test_numbers_run_from_one_without_gaps():
    assert [int(record.name[:4]) for record in RECORDS] == list(range(1, len(RECORDS) + 1))


def test_the_index_has_one_line_for_each():
    lines = re.findall(r"^\| \[(\d+)\]\((.+?)\) \| [A-Z`].+\. \|$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert lines == [(str(number), record.name) for number, record in enumerate(RECORDS, start=1)]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_record_has_its_form(record):
    text = record.read_text(encoding="utf-8")
    assert re.fullmatch(r"\d{4}-[a-z0-9-]+", record.stem)
    assert text.startswith(f"# {int(record.name[:4])}. ")
    assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE) == HEADINGS
    assert len(text.splitlines()) <= ONE_PAGE
