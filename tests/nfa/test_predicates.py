"""Step conditions over columns agree with their meaning on one event."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfa import Atom, Expression, Query, build_query, parse_pattern
from nfa.predicates import ALWAYS, PredicateTable
from nfa.reference import takes
from nfa.testing import conditions, event_lists
from nfa.values import Values
from streams import Event, EventBatch


def query(event: str) -> Query:
    return build_query(parse_pattern(f"PATTERN p EVENT {event}"))


def truth(condition: str, value: object) -> bool:
    batch = EventBatch.from_events([Event(id="e", type="A", time_us=0, key="k", data={"v": value})])
    return bool(PredicateTable.of([query(f"A a [{condition}]")]).evaluate(batch)[1, 0])


@given(condition=conditions(), events=event_lists(types=("A", "B"), max_size=12))
def test_columns_agree_with_single_events(condition: Expression, events: list[Event]) -> None:
    atom = Atom("A", "a", condition)
    table = PredicateTable({("A", condition): 1})
    passed = table.evaluate(EventBatch.from_events(events))
    assert passed[1].tolist() == [takes(atom, event) for event in events]


@pytest.mark.parametrize(
    ("condition", "value", "is_true"),
    [
        ("v = 1", 1, True),
        ("v = 1", 1.0, True),
        ("v = 1", True, False),
        ("v = TRUE", True, True),
        ("v < TRUE", False, False),
        ("v = '1'", 1, False),
        ("v != 1", None, False),
        ("NOT v = 1", None, False),
        ("NOT v = 1", "x", False),
        ("v IS NULL", [1], True),
        ("v IS NULL", {"x": 1}, True),
        ("v IS NOT NULL", 0, True),
        ("v > 9007199254740992", 9007199254740993, True),
        ("v > 'a'", "b", True),
        ("v IN (1, NULL)", 2, False),
        ("NOT v IN (1, NULL)", 2, False),
        ("v NOT IN (1, 3)", 2, True),
        ("v", True, True),
        ("v", 1, False),
        ("v OR v IS NULL", None, True),
        ("v AND v IS NULL", None, False),
        ("(v = 1) = TRUE", 1, True),
    ],
)
def test_three_valued_logic(condition: str, value: object, is_true: bool) -> None:
    assert truth(condition, value) is is_true


def test_equal_conditions_are_evaluated_once() -> None:
    queries = [query("SEQ(A a [a.v > 1], A b [b.v > 1])"), query("SEQ(A x [v > 1], B y [v > 1])")]
    assert len(PredicateTable.of(queries).rows) == 2


def test_the_row_without_condition_is_true_everywhere() -> None:
    events = [Event(id=str(i), type="Z", time_us=0, key="k") for i in range(3)]
    assert PredicateTable.of([]).evaluate(EventBatch.from_events(events))[ALWAYS].all()


@given(st.lists(st.one_of(st.none(), st.floats(), st.integers(-(2**62), 2**62), st.booleans(), st.text(max_size=2))))
def test_arrow_columns_hold_the_same_values_as_plain_ones(items: list[object]) -> None:
    for kind, arrow in ((float, pa.float64()), (int, pa.int64()), (bool, pa.bool_()), (str, pa.string())):
        column = [item if type(item) is kind else None for item in items]
        plain, typed = Values.of(column), Values.of_arrow(pa.array(column, arrow))
        for name in ("kinds", "integers", "floats", "texts"):
            assert np.array_equal(getattr(plain, name), getattr(typed, name)), name
