"""Matches in traces that keep constraints on names with a condition: an event of a pattern may show such a name."""

from __future__ import annotations

import pytest

from constraints import Monitor, parse_constraints
from nfa import Matcher
from streams import Event, EventBatch

ONE, AFTER_A = "PATTERN p EVENT E e", "PATTERN p EVENT SEQ(A a, E e)"
EITHER = "PATTERN p EVENT B | E e"
ABSENT = "PATTERN p EVENT SEQ(A a, NOT E n)"
CHOICE = "choice(E [v <= 0], C)"


@pytest.mark.parametrize(
    ("constraints", "text"),
    [
        (["init(E [v <= 0])", "absence(2, E)"], ONE),
        (["init(E [v <= 0])", "absence(2, E)"], EITHER),
        (["init(E [v <= 0])", "end(E)"], ONE),
        (["last(E [v <= 0])", "absence(2, E)"], AFTER_A),
        (["response(A, E [v <= 0])", "absence(2, E)"], AFTER_A),
        ([CHOICE, "exclusive(E, C)", "end(E)"], AFTER_A),
        ([CHOICE, "exclusive(E, C)", "absence(2, E)"], AFTER_A),
        ([CHOICE, "exclusive(E, C)", "absence(2, E)"], ABSENT),
    ],
)
def test_what_is_found_does_not_depend_on_constraints_that_are_kept(constraints: list[str], text: str) -> None:
    types = "E" if text in (ONE, EITHER) else "AE"
    assert found(text, types, constraints) == found(text, types)
    assert bool(found(text, types)) == (text != ABSENT)


def found(text: str, types: str, constraints: list[str] | None = None) -> list[dict[str, tuple[str, ...]]]:
    matcher = Matcher()
    matcher.add_pattern(text)
    if constraints is not None:
        matcher.set_guard(1, Monitor(parse_constraints(constraints).constraint_set))
    events = [
        Event(id=event_type, type=event_type, time_us=number, key="k", data={"v": 0})
        for number, event_type in enumerate(types)
    ]
    outputs = [matcher.process(EventBatch.from_events(events)), matcher.finish()]
    assert not [deviation for output in outputs for deviation in output.deviations()]
    return [dict(match.bindings) for output in outputs for match in output.matches()]
