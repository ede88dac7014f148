"""A kind that is added to the table of kinds is in every command, project, route and check, with no other line."""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from house import ROOT
from tests.builders.commands import running_commands

HERE = Path(__file__).parent
FINDING = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scripts")])}
PROJECT = """
kind: stream
name: orders
---
kind: tally
name: thirds
stream: orders
every: 3
"""


@pytest.fixture(scope="module")
def commands():
    with running_commands("tests.contracts.with_tally", path=FINDING["PYTHONPATH"]) as programs:
        yield programs


@pytest.fixture
def forestall(tmp_path, commands):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "project.yaml").write_text(PROJECT)
    lines = [{"id": f"e{n}", "type": "A", "time": f"2026-01-01T00:00:0{n}Z", "key": "k"} for n in range(1, 8)]
    (tmp_path / "orders.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))

    def run(*arguments, status=0):
        command = [commands / "forestall", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
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


def test_a_test_of_a_project_expects_its_results(forestall, tmp_path):
    lines = [{"id": f"e{n}", "type": "A", "time": n, "key": "k"} for n in range(1, 7)]
    case = {"kind": "test", "name": "t", "stream": "orders", "events": lines, "patterns": ["thirds"]}
    rules = tmp_path / "rules" / "project.yaml"
    others = "---\n{kind: tally, name: pairs, stream: orders, every: 2}\n"
    for expected, status in (
        (["tally=thirds key=k n=3", "tally=thirds key=k n=6"], 0),
        (["tally=thirds key=k n=3"], 1),
    ):
        document = orjson.dumps({**case, "expect": {"tallies": expected}}).decode()
        rules.write_text(f"{PROJECT}{others}---\n{document}\n")
        assert "tallies" in forestall("test", "rules", status=status) or not status


def test_members_that_it_does_not_know_are_refused_with_their_line(forestall, tmp_path):
    (tmp_path / "rules" / "project.yaml").write_text("kind: tally\nname: t\nstream: orders\nevery: 3\nevry: 3\n")
    assert "project.yaml:5: a tally has no member 'evry' (did you mean every?)" in forestall("test", "rules", status=2)


@pytest.mark.slow
@pytest.mark.redis
def test_the_service_has_it(tmp_path):
    options = ["-p", "tests.contracts.with_tally", "-p", "no:schemathesis", "-p", "no:cacheprovider", "-q", "-x"]
    cases = [str(HERE / "cases_with_tally.py"), "--rootdir", str(ROOT), "--basetemp", str(tmp_path / "cases")]
    command = [sys.executable, "-P", "-m", "pytest", *options, *cases]
    done = subprocess.run(command, env=FINDING, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
