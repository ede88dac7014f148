"""Documents of aggregates: what is refused, with the member that is wrong."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction
from typing import Any

import pytest

from aggregates import AggregateRefused, explain, read_aggregate

GOOD: dict[str, Any] = {"of": "x", "by": ["g"], "values": {"n": "count()", "s": "sum(a * b)"}, "window": "1 h"}


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"of": ""}, "'of'"),
        ({"window": "soon"}, "window: 'soon'"),
        ({"window": None}, "window: None"),
        ({"window": {"last": 0}}, "window"),
        ({"window": {"hopping": "5 min", "every": "2 min"}}, "divides"),
        ({"window": "0 s"}, "microseconds"),
        ({"values": {}}, "'values'"),
        ({"values": {"n": "total(x)"}}, "values, n"),
        ({"values": {"n": "sum()"}}, "needs an argument"),
        ({"values": {"n": "quantile(x, 2)"}}, "share"),
        ({"values": {"2n": "count()"}}, "'2n'"),
        ({"values": {"g": "count()"}}, "g: a value"),
        ({"values": {"from": "count()"}}, "'from'"),
        ({"by": ["g", "g"]}, "twice"),
        ({"by": [1]}, "'by'"),
        ({"having": ""}, "'having'"),
        ({"having": "before(m, 1 h) > 1"}, "'m'"),
        ({"having": "before(n, ever) > 1"}, "'ever'"),
        ({"having": "before(n, 90 min) > 1", "window": {"tumbling": "1 h"}}, "multiple"),
        ({"having": "all(n) > 1", "window": {"last": 3}}, "all(...)"),
        ({"clear": True}, "'clear'"),
        ({"clear": True, "having": "n > 1", "window": {"tumbling": "1 h"}}, "'clear'"),
        ({"events": -1}, "'events'"),
        ({"memory": {"rows": 0}}, "'memory'"),
        ({"since": "ever"}, "since"),
    ],
)
def test_a_wrong_member_is_named(changes: dict[str, Any], part: str) -> None:
    with pytest.raises(AggregateRefused) as refused:
        read_aggregate({**GOOD, **changes})
    assert part in refused.value.message


def share_of(text: str) -> Fraction:
    return read_aggregate({**GOOD, "values": {"q": f"quantile(x, {text})"}}).values[0].share


@pytest.mark.parametrize(
    ("text", "share"),
    [
        *[("0.95", "0.95"), ("1", "1"), (".5", "0.5"), ("0.500000000000", "0.5"), ("1e-09", "1e-9"), ("5E-1", "0.5")],
        *[("1/3", "1/3"), ("0.5_0", "0.5"), ("+0.5", "0.5")],  # stored definitions may have these forms
    ],
)
def test_the_share_of_a_quantile_is_a_number(text: str, share: str) -> None:
    assert share_of(text) == Fraction(share)


@pytest.mark.parametrize("text", ["0", "1.1", "0.1234567891", "1e-10", "1/0", "٠.٥", "0.5.5", ".", "nan"])
def test_other_shares_are_refused(text: str) -> None:
    with pytest.raises(AggregateRefused, match="share above 0 and up to 1"):
        share_of(text)


@pytest.mark.parametrize("text", ["1e-1000000", "1e1000000", "0." + "0" * 10_000 + "1"])
def test_a_share_with_many_digits_is_refused_before_it_is_computed(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(AggregateRefused, match="at most nine decimals"):
            share_of(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200_000


def test_a_condition_has_names_for_earlier_and_overall_values() -> None:
    body = read_aggregate({**GOOD, "having": "n > 2 * before(n, 7 d) AND s > all(s)"})
    assert body.having is not None
    assert body.having.text == "n > 2 * `before(n, 604800000000 us)` AND s > `all(s)`"
    assert body.having.names == ("before(n, 604800000000 us)", "all(s)")
    assert body.having.longest_us == 7 * 24 * 3_600_000_000
    assert body.is_global


@pytest.mark.parametrize(
    ("changes", "is_moved", "sentences"),
    [
        ({}, False, ["contain the key of the stream x", "Emitted: an event after each event."]),
        ({}, True, ["g does not contain the key", "do not merge partial values"]),
        ({"by": []}, True, ["one group needs all events in one shard"]),
        ({"having": "n > all(n)", "type": "Big"}, True, ["all(...) needs all events", "Big when the condition"]),
        (
            {"having": "n > before(n, 2 h)", "clear": True},
            False,
            ["for 2 h, one", "counts as an event", "becomes false"],
        ),
        ({"window": {"tumbling": "1 h"}, "having": "n > 1"}, False, ["each 1 h", "for which the condition is true"]),
        ({"window": {"hopping": "1 h", "every": "5 min"}}, False, ["every 5 min", "at the end of each window"]),
        ({"window": {"session": "1 h"}}, False, ["pauses of less than 1 h", "at the end of each window"]),
        ({"window": "transaction"}, False, ["all events of the transaction"]),
        ({"window": {"last": 1000}}, False, ["the last 1,000 events"]),
    ],
)
def test_it_is_explained(changes: dict[str, Any], is_moved: bool, sentences: list[str]) -> None:
    found = " ".join(explain(read_aggregate({**GOOD, **changes}), is_moved=is_moved))
    for one in sentences:
        assert one in found
