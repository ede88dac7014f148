"""What follows from the semantics (4.1, 4.2, 4.4, section 12), on the reference and random patterns and traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nfa.syntax import Atom, Conjunction, Disjunction, Item, Node, Pattern, Repeat, parts_of
from nfa.syntax import Sequence as Ordered
from streams import Event, Ties
from tests.builders.patterns import FEATURES, nodes, patterns, sequence, traces
from tests.references.patterns.outcome import reference_outcome

SETS = FEATURES - {"after", "limit", "timeouts"}  # the matches alone, whatever is reported with them
BOUNDED = settings(max_examples=150, deadline=None)
ties: st.SearchStrategy[Ties] = st.sampled_from(["log", "simultaneous"])


def bindings(pattern: Pattern, trace: Sequence[Event], ties: Ties) -> set:
    matches = reference_outcome(pattern, trace, ties=ties).matches
    return {tuple(sorted(match.bindings.items())) for match in matches}


def with_child(node: Node, old: Node, new: Node) -> Node:
    """The tree with one node (the very object) replaced."""
    if node is old:
        return new
    match node:
        case Ordered():
            items = tuple(
                item if item.of is None else replace(item, of=with_child(item.of, old, new)) for item in node.items
            )
            return replace(node, items=items)
        case Repeat():
            return replace(node, of=with_child(node.of, old, new))
        case Conjunction() | Disjunction():
            return replace(node, parts=tuple(with_child(part, old, new) for part in node.parts))
        case _:
            return node


def nodes_outside_loops(node: Node) -> Iterator[Node]:
    """The parts of which there is one at most; none of a GREEDY step, which is to stay a single step."""
    yield node
    if not (isinstance(node, Repeat) and (node.max != 1 or node.greedy)):
        for part in parts_of(node):
            yield from nodes_outside_loops(part)


def nodes_of(node: Node) -> Iterator[Node]:
    yield node
    for part in parts_of(node):
        yield from nodes_of(part)


def no_span(node: Node) -> bool:
    return isinstance(node, Atom | Repeat) or node.within_us is None


def renamed(node: Node) -> Node:
    """The part with aliases that no other part has."""
    if isinstance(node, Atom):
        return replace(node, alias=f"other_{node.alias}")
    parts = parts_of(node)
    if isinstance(node, Ordered):
        return sequence(*map(renamed, parts))
    assert isinstance(node, Conjunction | Disjunction)
    return replace(node, parts=tuple(map(renamed, parts)))


@BOUNDED
@given(patterns(features=SETS, max_atoms=3), st.data(), traces(max_size=6), ties)
def test_or_distributes_over_everything(pattern: Pattern, data: st.DataObject, trace: list[Event], ties: Ties) -> None:
    """A random step outside of loops becomes an OR of itself and of a random part."""
    part = data.draw(st.sampled_from([node for node in nodes_outside_loops(pattern.event) if no_span(node)]))
    other = renamed(data.draw(nodes(types=("A", "B", "C"), max_atoms=2)))
    choice = Disjunction((part, other))
    whole, *each = (
        bindings(replace(pattern, event=with_child(pattern.event, part, new)), trace, ties)
        for new in (choice, part, other)
    )
    assert whole == set().union(*each)


@BOUNDED
@given(patterns(features=SETS, max_atoms=4), st.data(), traces(), ties)
def test_a_plain_sequence_in_a_sequence_dissolves(
    pattern: Pattern, data: st.DataObject, trace: list[Event], ties: Ties
) -> None:
    """Some neighbouring entries of a sequence are wrapped into one of their own, which takes their first prefix."""
    rows = [node for node in nodes_of(pattern.event) if isinstance(node, Ordered)]
    assume(rows)
    row = data.draw(st.sampled_from(rows))
    first = data.draw(st.integers(0, len(row.items) - 1))
    last = data.draw(st.integers(first + 1, len(row.items)))
    inner = list(row.items[first:last])
    assume(any(item.of is not None for item in inner))
    head = next(number for number, item in enumerate(inner) if item.of is not None)
    prefix = inner[head].gap
    inner[head] = replace(inner[head], gap=None)
    wrapped = Item(of=Ordered(tuple(inner)), gap=prefix)
    nested = replace(row, items=(*row.items[:first], wrapped, *row.items[last:]))
    event = with_child(pattern.event, row, nested)
    assert bindings(replace(pattern, event=event), trace, ties) == bindings(pattern, trace, ties)


@BOUNDED
@given(patterns(features=SETS - {"next", "strict", "greedy"}), traces(), ties)
def test_strict_matches_are_next_matches_are_all_matches(pattern: Pattern, trace: list[Event], ties: Ties) -> None:
    strict, following, every = (
        bindings(replace(pattern, select=select), trace, ties) for select in ("strict", "next", "all")
    )
    assert strict <= following <= every


@BOUNDED
@given(patterns(), traces(max_size=7), st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_simultaneous_events_changes_nothing(
    pattern: Pattern, trace: list[Event], random: Random, is_open: bool
) -> None:
    shuffled = list(trace)
    random.shuffle(shuffled)
    shuffled.sort(key=lambda event: event.time_us)

    def told(events: list[Event]) -> tuple:
        outcome = reference_outcome(pattern, events, ties="simultaneous", is_open=is_open)

        def ids(bindings: Mapping[str, tuple[int, ...]]) -> list:
            return sorted((alias, [events[place].id for place in places]) for alias, places in bindings.items())

        matches = [(ids(match.bindings), match.detected_us, match.returns) for match in outcome.matches]
        timeouts = [(partial.due_us, ids(partial.bindings)) for partial in outcome.timeouts]
        return matches, sorted(timeouts), outcome.dropped

    assert told(shuffled) == told(trace)


@BOUNDED
@given(patterns(), traces(max_size=7), ties, st.booleans())
def test_moving_all_times_changes_nothing(pattern: Pattern, trace: list[Event], ties: Ties, is_open: bool) -> None:
    later = [replace(event, time_us=event.time_us + 977) for event in trace]
    first = reference_outcome(pattern, trace, ties=ties, is_open=is_open)
    second = reference_outcome(pattern, later, ties=ties, is_open=is_open)
    assert [(match.bindings, match.detected_us + 977) for match in first.matches] == [
        (match.bindings, match.detected_us) for match in second.matches
    ]
    assert [(partial.bindings, partial.due_us + 977) for partial in first.timeouts] == [
        (partial.bindings, partial.due_us) for partial in second.timeouts
    ]


@BOUNDED
@given(patterns(features=SETS), traces(), st.integers(0, 8))
def test_what_an_open_trace_shows_stays_when_it_goes_on(pattern: Pattern, trace: list[Event], size: int) -> None:
    """What is emitted at a watermark is final: more events change nothing about it."""
    shown = reference_outcome(pattern, trace[:size], is_open=True).matches
    later = reference_outcome(pattern, trace, is_open=True).matches
    assert [match for match in shown if match not in later] == []


@pytest.mark.parametrize("ties", ["log", "simultaneous"])
@BOUNDED
@given(patterns(features=FEATURES - {"timeouts"}), traces(max_size=7), st.integers(0, 7))
def test_matches_of_an_open_trace_are_emitted_in_order(
    ties: Ties, pattern: Pattern, trace: list[Event], size: int
) -> None:
    """What is emitted by a watermark is what is emitted first, after-match rules and caps included."""
    shown = reference_outcome(pattern, trace[:size], ties=ties, is_open=True).matches
    later = reference_outcome(pattern, trace, ties=ties, is_open=True).matches
    assert later[: len(shown)] == shown
