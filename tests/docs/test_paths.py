"""Files and folders of the project that documents name are there."""

import re

import pytest

from house import PACKAGES, ROOT, project_files

DOCUMENTS = [path for path in project_files(".md") if path.name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")]
DOCUMENTS += [path for path in project_files(".md") if path.parent == ROOT / "docs"]
NAMED = re.compile(rf"`((?:{'|'.join([*PACKAGES, 'tests', 'scripts', 'benchmarks'])})(?:/[a-z_0-9.-]+)+)`")

WRITTEN = ("benchmarks/results", "benchmarks/peers/results")  # by benchmarks


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_named_files_are_there(document):
    named = NAMED.findall(document.read_text(encoding="utf-8"))
    assert [path for path in named if not path.startswith(WRITTEN) and not (ROOT / path).exists()] == []


def test_a_missing_file_would_be_seen():
    (path,) = NAMED.findall("see `nfa/run_rows.py` and `SEQ`")
    assert not (ROOT / path).exists()
