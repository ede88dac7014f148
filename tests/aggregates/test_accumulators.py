"""Values of windows that no event leaves: small states, and estimates beyond a number of values."""

from __future__ import annotations

from random import Random

import orjson
import pytest

from aggregates import AggregateRun, EventColumns, EventRows, Row, read_aggregate
from aggregates.accumulators import EXACT, Accumulator
from aggregates.objects import accumulator_of
from aggregates.values import read_values
from streams import key_hash

_CHANCE = Random(3)
NUMBERS = [_CHANCE.gauss(0, 100) for _ in range(3 * EXACT)]


def value(text: str) -> Accumulator:
    return accumulator_of(read_values({"v": text})[0], leaves=False)


@pytest.mark.parametrize("text", ["distinct(x)", "quantile(x, 0.9)", "stddev(x)", "max(x)", "first(x)"])
def test_a_saved_value_continues_as_if_it_had_not_been_saved(text: str) -> None:
    whole, saved = value(text), value(text)
    for number, x in enumerate(NUMBERS):
        whole.add(x, (number, number))
        saved.add(x, (number, number))
        if number % 1_000 == 999:
            again = value(text)
            again.load(orjson.loads(orjson.dumps(saved.dump())))
            saved = again
            assert saved.value() == whole.value()


def test_distinct_values_are_exact_up_to_a_bound_and_estimated_with_an_error_beyond() -> None:
    one = value("distinct(x)")
    for number in range(10 * EXACT):
        one.add(number % EXACT, (0, number))
    assert (one.value(), one.error) == (EXACT, None)
    for number in range(10 * EXACT):
        one.add(float(number), (0, number))
    assert one.error is not None
    assert abs(one.value() - 10 * EXACT) < 4 * one.error * 10 * EXACT


def test_quantiles_are_exact_up_to_a_bound_and_near_beyond() -> None:
    one = value("quantile(x, 0.9)")
    for number, x in enumerate(NUMBERS, 1):
        one.add(x, (0, number))
        if number == EXACT:
            assert one.value() == sorted(NUMBERS[:EXACT])[-(-9 * EXACT // 10) - 1]
    found = one.value()
    assert isinstance(found, float)
    assert abs(sum(x <= found for x in NUMBERS) / len(NUMBERS) - 0.9) < 0.01


def test_a_window_that_ends_keeps_one_row_and_reports_the_error() -> None:
    run = AggregateRun(read_aggregate({"of": "x", "values": {"u": "distinct(x)"}, "window": {"tumbling": "1 h"}}), None)
    rows = [Row(number, (), "k", key_hash("k"), f"e{number}", (number,)) for number in range(2 * EXACT)]
    run.process(EventColumns.of(run.body, EventRows(rows, rows[-1].time_us)))
    assert run.measures()["held"] == 1
    (found,) = run.finish()
    assert found.data["u"] == pytest.approx(2 * EXACT, rel=0.05)
    assert 0 < found.data["u_error"] < 0.02
