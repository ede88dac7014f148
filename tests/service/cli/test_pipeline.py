"""``forestall pipeline plan``: lines of shards and of operators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from service.cli import pipeline
from service.cli.calling import Caller
from service.client import Call

ALONE = {"name": "j", "selectivity": 0.5, "results_per_s": 20.0}
SEVERAL = [{"name": name, "selectivity": 0.00123, "results_per_s": 0.25} for name in ("p", "q")]
COST = {"cost_us": 12.34, "selectivity": 0.5, "priority": 0.1, "cores": 0.01}
PLAN = {
    "runtime": "continuous",
    "policy": "oldest-first",
    "tasks": [{"name": "task-1", "shards": [0]}],
    "shards": [{"shard": 0, "task": "task-1", "position": "5-0", "lag_s": 0.25}],
    "engines": [
        {"stream": "j.inputs", "kind": "join", "events_per_s": 40.0, **COST, "operators": [ALONE]},
        {"stream": "orders", "kind": "pattern", "events_per_s": 200.04, **COST, "operators": SEVERAL},
    ],
}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answering(Caller):
        def send(self, call: Call) -> dict[str, Any]:
            assert (call.method, call.path) == ("GET", "/v1/pipeline/plan")
            return PLAN

    @contextmanager
    def calling(*_: object) -> Iterator[Answering]:
        yield Answering("http://127.0.0.1:1")

    monkeypatch.setattr("service.cli.calling.calling", calling)


@pytest.mark.usefixtures("service")
def test_a_plan_has_a_line_for_each_engine_and_operator() -> None:
    printed = CliRunner().invoke(pipeline.pipeline, ["plan"])
    assert printed.exit_code == 0, printed.output
    rows = [line.split() for line in printed.output.splitlines()]
    assert ["runtime:", "continuous"] in rows
    assert ["0", "task-1", "5-0", "0.25"] in rows
    assert ["j.inputs", "j", "40.0", "12.3", "0.5", "20.0"] in rows
    assert ["orders", "2", "pattern", "operators", "200.0", "12.3", "0.5", "0.5"] in rows
    assert ["orders", "q", "-", "-", "0.0012", "0.2"] in rows


@pytest.mark.usefixtures("service")
def test_json_is_that_of_the_api() -> None:
    printed = CliRunner().invoke(pipeline.pipeline, ["plan", "--json"])
    assert orjson.loads(printed.output) == PLAN
