"""Values of windows that no event leaves: exact up to a number of values, and estimates beyond it."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson
import pytest

from aggregates import AggregateRun, Emission, read_aggregate
from aggregates.objects import EXACT
from streams import key_hash
from tests.builders.aggregates import columns_of
from tests.references.aggregates import Row

_CHANCE = Random(3)
NUMBERS = [_CHANCE.gauss(0, 100) for _ in range(3 * EXACT)]


def run_of(text: str) -> AggregateRun:
    body = read_aggregate({"of": "x", "values": {"n": "count()", "v": text}, "window": {"tumbling": "1 h"}})
    return AggregateRun(body, None)


def taken(run: AggregateRun, arguments: list[Any], first: int = 0) -> list[Emission]:
    rows = [Row(0, (), "k", key_hash("k"), f"e{n}", (True, one)) for n, one in enumerate(arguments, first)]
    return run.process(columns_of(run.body, rows))


def values(text: str, arguments: list[Any]) -> dict[str, Any]:
    run = run_of(text)
    taken(run, arguments)
    assert run.measures()["held"] == 1
    return dict(run.finish()[0].data)


@pytest.mark.compiled
@pytest.mark.parametrize("text", ["distinct(x)", "quantile(x, 0.9)", "stddev(x)", "max(x)", "first(x)"])
def test_a_saved_value_continues_as_if_it_had_not_been_saved(text: str) -> None:
    saved = run_of(text)
    for first in range(0, len(NUMBERS), 1_000):
        taken(saved, NUMBERS[first : first + 1_000], first)
        head, sections = saved.dump()
        saved = run_of(text)
        saved.load(orjson.loads(orjson.dumps(head)), sections)
    assert saved.finish()[0].data == values(text, NUMBERS)


@pytest.mark.compiled
def test_distinct_values_are_exact_up_to_a_bound_and_estimated_with_an_error_beyond() -> None:
    few = [n % EXACT for n in range(2 * EXACT)]
    assert values("distinct(x)", few)["v"] == EXACT
    texts = [f"t{n % EXACT}" for n in range(2 * EXACT)]
    assert "v_error" not in values("distinct(x)", texts)
    for many in (few + [float(n) for n in range(10 * EXACT)], texts + [f"t{n}" for n in range(10 * EXACT)]):
        found = values("distinct(x)", many)
        assert 0 < found["v_error"] < 0.02
        assert abs(found["v"] - 10 * EXACT) < 4 * found["v_error"] * 10 * EXACT


def test_values_that_occurred_often_are_handed_to_a_sketch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has room for the values, and not for each of their events."""
    monkeypatch.setattr("aggregates.window_tables.EXACT", 5)
    monkeypatch.setattr("aggregates.window_tables._STEPS", 16)
    found = values("distinct(x)", [n % 5 for n in range(200)] + [7])
    assert (found["v"], "v_error" in found) == (6, True)


@pytest.mark.compiled
def test_quantiles_are_exact_up_to_a_bound_and_near_beyond() -> None:
    assert values("quantile(x, 0.9)", NUMBERS[:EXACT])["v"] == sorted(NUMBERS[:EXACT])[-(-9 * EXACT // 10) - 1]
    found = values("quantile(x, 0.9)", NUMBERS)["v"]
    assert isinstance(found, float)
    assert abs(sum(x <= found for x in NUMBERS) / len(NUMBERS) - 0.9) < 0.01


def test_values_beyond_the_bound_are_handed_to_a_sketch_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggregates.window_tables.EXACT", 5)
    kinds = [1, 1.0, 2.5, "a", "b", True, False, None, 2**62, 0, -0.0, "c", 2.5, "a", 1e300]
    for size in range(1, len(kinds)):
        found = values("distinct(x)", kinds[:size])
        expected = len({(isinstance(one, bool), one) for one in kinds[:size] if one is not None})
        assert (found["v"], "v_error" in found) == (expected, expected > 5)
    assert values("quantile(x, 0.5)", [*range(100), "a", None])["v"] == pytest.approx(50, abs=1)
