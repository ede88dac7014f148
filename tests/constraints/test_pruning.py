"""The matcher under a monitor: what is pruned can never have matched, and what deviates is pruned no more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from constraints import ConstraintSet, End, Exclusive, Monitor, Prior, Require
from constraints.testing import constraint_sets
from nfa import Match, Matcher, Node, describe_node
from nfa.testing import TYPES, batches, event_lists, nodes, run, splits
from streams import Event, EventBatch


def keeping(constraint_set: ConstraintSet, events: list[Event]) -> list[Event]:
    """The events without those by which their trace would deviate."""
    monitor = Monitor(constraint_set)
    seen: dict[str, frozenset[str]] = {}
    kept = []
    for event in events:
        after = monitor.step(seen.get(event.key, frozenset()), event.type)
        if after is not None:
            seen[event.key] = frozenset() if event.type in constraint_set.end_events else after
            kept.append(event)
    return kept


def matchers(node: Node, constraint_set: ConstraintSet) -> tuple[Matcher, Matcher]:
    """A pruning and a plain matcher of one pattern."""
    found = []
    for _ in range(2):
        matcher = Matcher(end_events=constraint_set.end_events)
        matcher.add_pattern(f"PATTERN p EVENT {describe_node(node)}")
        found.append(matcher)
    found[0].set_guard(1, Monitor(constraint_set))
    return found[0], found[1]


def trace(types: str) -> list[Event]:
    return [Event(id=f"{name}{place}", type=name, time_us=place, key="k") for place, name in enumerate(types)]


def ids(match: Match) -> list[str]:
    return [event for events in match.bindings.values() for event in events]


@given(st.data())
def test_pruned_equals_unpruned_on_traces_that_keep_the_constraints(data: st.DataObject) -> None:
    constraint_set = data.draw(constraint_sets(TYPES))
    node = data.draw(nodes())
    events = keeping(constraint_set, data.draw(event_lists(max_size=14)))
    pruning, plain = matchers(node, constraint_set)
    found, endings = run(pruning, batches(events, data.draw(splits(len(events)))))
    expected, _ = run(plain, [EventBatch.from_events(events)])
    assert found == expected
    assert pruning.stats.deviations == 0
    assert pruning.stats.peak_held <= plain.stats.peak_held
    places = {event.id: place for place, event in enumerate(events)}
    ends = [place for place, event in enumerate(events) if event.type in constraint_set.end_events]
    for ending in endings:
        doomed = places[ending.event_id]
        border = next((end for end in ends if end >= doomed and events[end].key == ending.key), len(events))
        late = [match for match in expected if doomed < max(map(places.__getitem__, ids(match))) <= border]
        assert not [match for match in late if match.key == ending.key]


@given(st.data())
def test_saved_and_loaded_in_between_ends_the_same_runs(data: st.DataObject) -> None:
    constraint_set = data.draw(constraint_sets(TYPES))
    node, events = data.draw(nodes()), data.draw(event_lists(max_size=12))
    whole, _ = matchers(node, constraint_set)
    parts, _ = matchers(node, constraint_set)
    expected = run(whole, [EventBatch.from_events(events)])
    matches, endings = [], []
    for batch in batches(events, data.draw(splits(len(events)))):
        output = parts.process(batch)
        matches += output.matches()
        endings += output.endings()
        parts = Matcher.load(parts.dump(), {1: Monitor(constraint_set)})
    assert sorted(map(repr, matches)) == sorted(map(repr, expected[0]))
    assert endings == expected[1]
    assert parts.stats.held == whole.stats.held
    assert parts.stats.deviations == whole.stats.deviations


@given(st.data())
def test_a_deviating_trace_loses_only_what_was_released_before(data: st.DataObject) -> None:
    constraint_set = data.draw(constraint_sets(TYPES))
    node, events = data.draw(nodes()), data.draw(event_lists(max_size=12, keys=("k",)))
    if constraint_set.end_events:
        events = [event for event in events if event.type not in constraint_set.end_events]
    pruning, plain = matchers(node, constraint_set)
    found, _ = run(pruning, [EventBatch.from_events(events)])
    expected, _ = run(plain, [EventBatch.from_events(events)])
    deviations = matchers(node, constraint_set)[0].process(EventBatch.from_events(events)).deviations()
    border = next(
        (place for place, event in enumerate(events) if deviations and event.id == deviations[0].event_id), 99
    )
    places = {event.id: place for place, event in enumerate(events)}
    assert all(match in expected for match in found)
    for match in expected:
        bound = [places[event] for event in ids(match)]
        if max(bound) < border or min(bound) >= border:
            assert match in found


def test_a_pair_that_had_failed_is_reopened_at_the_deviating_event() -> None:
    """Golden case V1: p(A,B), ``B A C``; SEQ(A,C) had failed at B."""
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, C c)")
    matcher.set_guard(1, Monitor(ConstraintSet.of([Prior("A", "B")])))
    matches, endings = run(matcher, [EventBatch.from_events(trace("BAC"))])
    assert [ending.event_id for ending in endings] == ["B0"]
    assert [match.bindings for match in matches] == [{"a": ("A1",), "c": ("C2",)}]


def test_a_later_instance_that_cannot_complete_is_not_stored() -> None:
    """Golden case 2: p(Q,S), SEQ(O,Q,F), ``O Q S O``: the second O is not stored, the first stays with its Q."""
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(O o, Q q, F f)")
    matcher.set_guard(1, Monitor(ConstraintSet.of([Prior("Q", "S")])))
    matcher.process(EventBatch.from_events(trace("OQSO")))
    assert matcher.stats.held == 2


def test_equal_types_die_on_every_bound_set_of_their_own() -> None:
    """Golden case 11: p(A,Z), AND(A, SEQ(A,B)): ``A Z`` is dead, ``A A Z`` is not."""
    text = "PATTERN p EVENT AND(A x, SEQ(A y, B z))"
    counts = {}
    for types in ("AZ", "AAZB"):
        matcher = Matcher()
        matcher.add_pattern(text)
        matcher.set_guard(1, Monitor(ConstraintSet.of([Prior("A", "Z")])))
        matches, endings = run(matcher, [EventBatch.from_events(trace(types))])
        counts[types] = (len(matches), len(endings))
    assert counts == {"AZ": (0, 1), "AAZB": (2, 0)}


def test_constraint_work_is_done_once_per_new_type_only() -> None:
    constraint_set = ConstraintSet.of([Exclusive("A", "B"), Require("C", "D"), End("E")])
    matcher = Matcher(end_events=constraint_set.end_events)
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, C c)")
    matcher.set_guard(1, Monitor(constraint_set))
    for number in range(5):
        events = [
            Event(id=f"{number}-{place}", type=name, time_us=place, key="k") for place, name in enumerate("AACCDDE")
        ]
        matcher.process(EventBatch.from_events(events))
    stats = matcher.stats
    assert stats.guard_steps == 5 * 4
    assert stats.guard_builds <= 7
