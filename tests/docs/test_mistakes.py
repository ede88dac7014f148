"""The page of typical mistakes shows what the command line says."""

import sys

import pytest

from house import ROOT
from house.documents import code_blocks
from service.cli import main

BLOCKS = list(code_blocks((ROOT / "docs/mistakes.md").read_text(encoding="utf-8")))
EVENTS, *MISTAKES = [block.text for block in BLOCKS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("mistakes")
    (made / "tickets.csv").write_text(EVENTS)
    (made / "local.csv").write_text(EVENTS.replace("Z,", ","))
    (made / "twice.csv").write_text(EVENTS.replace("\n4,", "\n1,"))
    (made / "rules.yaml").write_text("prior: [[opened, closed]]\n")
    return made


def test_there_are_at_least_ten():
    assert len(MISTAKES) >= 10


@pytest.mark.parametrize("mistake", MISTAKES, ids=range(1, len(MISTAKES) + 1))
def test_what_is_said_is_what_the_page_shows(folder, monkeypatch, capsys, mistake):
    pattern, command, *said = mistake.splitlines()
    (folder / "p.pattern").write_text(pattern)
    assert command.startswith("$ forestall ")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["forestall", *command.split()[2:]])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])  # "match" hides pandas from the rest of its process
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    with pytest.raises(SystemExit):
        main()
    printed = capsys.readouterr().err.splitlines()
    assert said
    assert [line for line in said if line not in printed] == []
