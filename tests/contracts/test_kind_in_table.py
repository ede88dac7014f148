"""A kind that is added to the table of kinds is in projects and their runs, with no other line."""

import os
import subprocess
import sys

import orjson
import pytest

from house import ROOT
from tests.contracts import with_tally

PROJECT = """
kind: stream
name: orders
---
kind: tally
name: thirds
stream: orders
every: 3
"""


@pytest.fixture
def forestall(tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "project.yaml").write_text(PROJECT)
    lines = [{"id": f"e{n}", "type": "A", "time": f"2026-01-01T00:00:0{n}Z", "key": "k"} for n in range(1, 8)]
    (tmp_path / "orders.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))

    def run(*arguments, status=0):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scripts")])}
        command = [sys.executable, "-P", with_tally.__file__, *arguments]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    return run


def test_a_project_runs_it_and_lists_its_results(forestall):
    printed = forestall("run", "rules", "--events", "orders=orders.jsonl")
    assert "tallies  orders  tally=thirds key=k n=3\ntallies  orders  tally=thirds key=k n=6\n" in printed
    assert "7 events" in printed
    assert "2 tallies" in printed
    found = orjson.loads(
        forestall("run", "rules", "--events", "orders=orders.jsonl", "--output", "json").splitlines()[0]
    )
    assert [one["n"] for one in found["tallies"]] == [3, 6]


def test_members_that_it_does_not_know_are_refused_with_their_line(forestall, tmp_path):
    (tmp_path / "rules" / "project.yaml").write_text("kind: tally\nname: t\nstream: orders\nevery: 3\nevry: 3\n")
    assert "project.yaml:5: a tally has no member 'evry' (did you mean every?)" in forestall("test", "rules", status=2)
