"""Real logs: what is found holds, and the models that were made from logs fit them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from constraints import ConstraintSet, check_set, parse_constraints
from streams.readers import ReaderOptions, read_events
from workflows import MiningSettings, ReadOptions, check_log, compile_workflow, count_violations, mine, read_model

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"

LOGS = ("receipt", "repairExample", "reviewing", "roadtraffic100traces", "running-example")


def traces_of(name: str) -> list[Sequence[str]]:
    path = SHARED / "logs" / f"{name}.xes.gz"
    if not path.exists():
        pytest.skip(f"shared data absent: {path} (issue #5)")
    traces: dict[str, list[str]] = {}
    for event in read_events(path, ReaderOptions(lifecycle=name == "repairExample")):
        traces.setdefault(event.key, []).append(event.type)
    return list(traces.values())


@pytest.mark.parametrize("name", LOGS)
def test_what_is_found_holds_on_the_log(name: str) -> None:
    traces = traces_of(name)
    found = mine(traces, MiningSettings(has_rules=True))
    assert found.useful
    assert set(count_violations(ConstraintSet.of(mined.part for mined in found.all), traces).values()) == {0}
    loose = mine(traces, MiningSettings(min_confidence=0.95, has_rules=True))
    counted = count_violations(ConstraintSet.of(mined.part for mined in loose.useful), traces)
    assert all(counted[mined.part] == mined.violations for mined in loose.useful)
    assert all(mined.confidence >= 0.95 for mined in loose.useful)
    check_set(parse_constraints(loose.to_document()).constraint_set)


@pytest.mark.parametrize(("model", "log"), [("receipt.bpmn", "receipt"), ("roadtraffic.pnml", "roadtraffic100traces")])
def test_models_fit_the_logs_that_they_were_made_from(model: str, log: str) -> None:
    traces = traces_of(log)
    compiled = compile_workflow(read_model((SHARED / "models" / "pm4py" / model).read_bytes(), ReadOptions()))
    found = check_log(compiled, traces)
    assert found.is_exact
    assert found.traces == len(traces)
    assert found.fitting_share == 1.0
    backwards = check_log(compiled, [trace[::-1] for trace in traces])
    assert backwards.conforming < len(traces)
    assert sum(one.traces for one in backwards.deviations) == len(traces) - backwards.conforming
