"""Strategies and a harness for tests of the matcher: random patterns, random streams, any split into batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from nfa.matcher import Matcher
from nfa.results import Ending, Match, match_order
from nfa.syntax import (
    Atom,
    Attribute,
    Both,
    Comparison,
    Conjunction,
    Disjunction,
    Either,
    Expression,
    InList,
    IsNull,
    Literal,
    Node,
    Not,
)
from nfa.syntax import (
    Sequence as Ordered,
)
from streams import Event, EventBatch

_COMPOSITES: tuple[type[Ordered | Conjunction | Disjunction], ...] = (Ordered, Conjunction, Disjunction)

TYPES = ("A", "B", "C", "D")

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([-0.5, 0.0, 1.0, 2.5]),
    st.sampled_from(["", "a", "b"]),
)
attributes = st.sampled_from([Attribute(("v",)), Attribute(("w",)), Attribute(("n", "x"))])
literals = scalars.map(Literal)
signs = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


def conditions(depth: int = 2) -> st.SearchStrategy[Expression]:
    """Random step conditions."""
    comparisons = st.builds(Comparison, signs, st.one_of(attributes, literals), st.one_of(attributes, literals))
    leaves = st.one_of(
        comparisons,
        st.builds(IsNull, attributes),
        st.builds(InList, attributes, st.lists(literals, min_size=1, max_size=3).map(tuple)),
        attributes,
    )
    if depth == 0:
        return leaves
    inner = conditions(depth - 1)
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(leaves, st.builds(Not, inner), st.builds(Both, several), st.builds(Either, several))


@st.composite
def nodes(draw: st.DrawFn, *, types: Sequence[str] = TYPES, max_atoms: int = 5, with_conditions: bool = True) -> Node:
    """A random composite event of 1 to ``max_atoms`` atoms with distinct aliases."""
    budget = draw(st.integers(1, max_atoms))
    condition = st.one_of(st.none(), st.none(), conditions(1)) if with_conditions else st.none()
    numbers = iter(range(max_atoms))

    def build(size: int) -> Node:
        if size == 1:
            return Atom(draw(st.sampled_from(types)), f"a{next(numbers)}", draw(condition))
        cuts = sorted(draw(st.sets(st.integers(1, size - 1), min_size=1, max_size=size - 1)))
        sizes = [end - start for start, end in zip([0, *cuts], [*cuts, size], strict=True)]
        parts = tuple(build(part) for part in sizes)
        composite: type[Ordered | Conjunction | Disjunction] = draw(st.sampled_from(_COMPOSITES))
        return composite(parts)

    return build(budget)


@st.composite
def event_lists(
    draw: st.DrawFn, *, types: Sequence[str] = TYPES, max_size: int = 10, keys: Sequence[str] = ("k", "l")
) -> list[Event]:
    """Random events in log order, with ties, gaps and nulls."""
    rows = draw(
        st.lists(st.tuples(st.sampled_from(types), st.sampled_from(keys), st.integers(0, 2), data()), max_size=max_size)
    )
    events, now = [], 0
    for number, (event_type, key, gap, attributes_) in enumerate(rows):
        now += gap
        events.append(Event(id=f"e{number}", type=event_type, time_us=now, key=key, data=attributes_))
    return events


def data() -> st.SearchStrategy[dict[str, Any]]:
    """Random attributes that the random conditions read."""
    nested = st.fixed_dictionaries({}, optional={"x": scalars})
    return st.fixed_dictionaries({}, optional={"v": scalars, "w": scalars, "n": st.one_of(nested, scalars)})


def splits(size: int) -> st.SearchStrategy[list[int]]:
    """Ascending places at which to cut a list of ``size``."""
    return st.sets(st.integers(0, size), max_size=4).map(sorted)


def batches(events: Sequence[Event], cuts: Iterable[int]) -> list[EventBatch]:
    """The events as batches, cut at the given places."""
    borders = [0, *cuts, len(events)]
    return [EventBatch.from_events(events[start:end]) for start, end in pairwise(borders)]


def run(matcher: Matcher, parts: Iterable[EventBatch]) -> tuple[list[Match], list[Ending]]:
    """All matches, sorted, and all endings, in order, of some batches."""
    matches: list[Match] = []
    endings: list[Ending] = []
    for part in parts:
        output = matcher.process(part)
        matches += output.matches()
        endings += output.endings()
    return sorted(matches, key=match_order), endings
