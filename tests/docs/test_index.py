"""Every page is found from the index, and every link inside the project leads somewhere."""

import re

import pytest

from house import ROOT, project_files

DOCS = ROOT / "docs"
DOCUMENTS = [path for path in project_files(".md") if "tests" not in path.relative_to(ROOT).parts]
LINK = re.compile(r"\]\(\s*(?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)")
BLOCK = re.compile(r"^ *(```|~~~).*?^ *\1", flags=re.MULTILINE | re.DOTALL)


def links(path):
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    return [((path.parent / target).resolve() if target else path, anchor) for target, anchor in LINK.findall(text)]


def anchors(path):
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_index():
    listed = {target for target, _ in links(DOCS / "README.md")}
    pages = {path for path in DOCUMENTS if DOCS in path.parents and path.parent.name != "adr"} - {DOCS / "README.md"}
    assert sorted(path.name for path in pages - listed) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document):
    for target, anchor in links(document):
        assert target.exists(), target
        assert not anchor or anchor in anchors(target), f"{target}#{anchor}"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 200
