"""Conditions between events that something else has combined."""

from typing import Any

import numpy as np
import pytest

from nfa import PatternRefused, parse_combined


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p.v = ", "line 1, column 7: the text ends; expected"),
        ("p.v =\n=", "line 2, column 1: unexpected '='"),
        ("q.x = 1", "line 1, column 1: q is not an alias"),
        ("p.v = 1 AND count(p) = 1", "line 1, column 13: count reads several events"),
        ("p.key = o.key", "line 1, column 1: the events of a combination have the same key"),
        ("p = 1", "the alias p is an event, not a value"),
        ("p.a = 1] x [b = 2", "unexpected"),
        ("prev(p.x) = 1", "prev can only be used in the brackets of a step"),
    ],
)
def test_what_has_no_meaning_is_refused_at_its_place(text: str, message: str) -> None:
    with pytest.raises(PatternRefused) as refused:
        parse_combined(text, ["o", "p"])
    assert message in refused.value.message


def test_a_condition_is_true_false_or_null_as_in_patterns() -> None:
    condition = parse_combined("p.v = o.v AND (time(p) >= time(o) OR type(p) LIKE 'x%')", ["o", "p"])
    assert condition.reads == (
        ("p", "value", ("v",)),
        ("o", "value", ("v",)),
        ("p", "time", ()),
        ("o", "time", ()),
        ("p", "type", ()),
    )
    left = [1, 1.0, "1", None, True, 2]
    right = [1.0, 1, 1, None, True, 2]
    columns: list[list[Any]] = [left, right, [5] * 5 + [1], [5] * 6, ["A"] * 5 + ["x1"]]
    each, none = np.arange(6), np.arange(0)
    assert condition.holds([(one, each) for one in columns], 6).tolist() == [True, True, False, False, True, True]
    assert condition.holds([([], none)] * 5, 0).tolist() == []
    turned = each[::-1]
    assert condition.holds([(one, turned) for one in columns], 6).tolist() == [True, True, False, False, True, True]
    assert condition.holds([(one[:1], none.repeat(0)) for one in columns], 0).tolist() == []
    assert condition.holds([(one[2:3], np.zeros(3, np.intp)) for one in columns], 3).tolist() == [False] * 3


def test_expressions_read_lists_and_totals() -> None:
    lists = parse_combined("sum(p.items, price) + o.v", ["o", "p"])
    assert lists.reads == (("p", "value", ("items",)), ("o", "value", ("v",)))
    each = np.arange(2)
    assert lists.column([([[{"price": 3}, {"price": 4}], "none"], each), ([1, 1], each)], 2) == [8.0, None]
    totals = parse_combined("round(sum(p.weight) / count(p), 1)", ["o", "p"], takes_totals=True)
    assert totals.reads == (("p", "sum", ("weight",)), ("p", "count", ()))
    assert totals.column([([10, 5], each), ([3, 0], each)], 2) == [3.3, None]
    with pytest.raises(PatternRefused, match="sum takes an attribute here, as in sum"):
        parse_combined("sum(p.a + p.b)", ["o", "p"], takes_totals=True)
