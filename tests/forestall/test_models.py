"""Models and tables of past events: the results of the commands, as frames."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

import forestall
from service.cli.app import build_app

TREE = "tree: {sequence: [A, {xor: [B, C]}, D]}"
TRACES = {"1": "ABD", "2": "ACD", "3": "AD", "4": "ABX", "5": "AB"}
ROWS = [
    {"id": f"{key}:{at}", "type": event_type, "time": 1_767_225_600 + 10 * at, "key": key}
    for key, trace in TRACES.items()
    for at, event_type in enumerate(trace)
]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "flow.yaml").write_text(TREE)
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return tmp_path


def invoked(command, *words):
    return CliRunner().invoke(build_app([command]), [command, *map(str, words)])


def test_conformance_is_that_of_the_command(files):
    done = CliRunner().invoke(
        build_app(["conformance"]), ["conformance", str(files / "flow.yaml"), str(files / "log.jsonl"), "--json"]
    )
    expected = json.loads(done.stdout)
    found = forestall.conformance(pd.DataFrame(ROWS), files / "flow.yaml")
    assert (found.found.traces, found.found.conforming, found.found.complete) == (5, 3, 2)
    assert expected["conforming"] == found.found.conforming
    deviations = found.deviations.to_dict("records")
    assert [(one["event"], one["transactions"], one["example"]) for one in deviations] == [
        (one["event"], one["traces"], one["example"]) for one in expected["deviations"]
    ]
    each = {
        one["key"]: (one["conforms"], one["complete"], one["event"]) for one in found.transactions.to_dict("records")
    }
    assert each == {
        "1": (True, True, None),
        "2": (True, True, None),
        "3": (False, False, "D"),
        "4": (False, False, "X"),
        "5": (True, False, None),
    }


def test_discovered_constraints_are_those_of_the_command(files):
    done = invoked("discover", files / "log.jsonl", "--min-support", "1")
    found = forestall.discover(ROWS, min_support=1)
    assert found.document["constraints"] == yaml.safe_load(done.stdout)["constraints"]
    assert {one["violations"] for one in found.constraints} == {0}
    matched = forestall.match(ROWS, "PATTERN p EVENT SEQ(B b, A a)", constraints=found.document)
    assert matched.stats["matches"] == 0


def test_end_events_cut_transactions():
    rows = [{"type": name, "time": at, "key": "k"} for at, name in enumerate("ABDACD")]
    assert forestall.conformance(rows, TREE, end_events=["D"]).found.complete == 2


def test_simulated_transactions_follow_the_model():
    table = forestall.simulate(TREE, 20, seed=7)
    assert table.schema.names == ["id", "type", "time", "key"]
    found = forestall.conformance(table, TREE).found
    assert (found.traces, found.complete) == (20, 20)
    assert table.equals(forestall.simulate(TREE, 20, seed=7))


def test_a_model_that_cannot_be_read_is_refused():
    with pytest.raises(forestall.ForestallError, match="there is no tree"):
        forestall.simulate("sequence: [A]", 1)
