"""The matcher under a monitor: what is pruned can never have matched, and what deviates is pruned no more."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from constraints import ConstraintSet, End, Exclusive, Monitor, Part, Prior, Require, Settings
from house.examples import Draws
from nfa import Match, Matcher, Node, PatternRefused, Prune, describe_node, parse_pattern
from streams import Event, EventBatch
from tests.builders.constraints import constraint_sets, keeping, random_query, random_set
from tests.builders.patterns import TYPES, batches, event_lists, nodes, run, splits
from tests.references.alive import alive


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


@settings(max_examples=60)
@given(st.data())
def test_pruned_equals_unpruned_on_traces_that_keep_the_constraints(data: st.DataObject) -> None:
    check_nothing_is_lost(data)


@settings(max_examples=60)
@given(st.data())
def test_nothing_is_lost_where_only_last_iterations_are_reasoned_about(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nfa.automata.iterations.MAX_REASONED", 1)
        patched.setattr("nfa.registered._COMPILED", {})
        check_nothing_is_lost(data)


def check_nothing_is_lost(data: st.DataObject) -> None:
    constraint_set = data.draw(constraint_sets(TYPES))
    assume(alive(constraint_set, frozenset()))  # a set that no trace keeps is refused
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


@settings(max_examples=40)
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


@settings(max_examples=60)
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
    for match in found:
        assert match.deviating == (max(places[event] for event in ids(match)) >= border)
    unmarked = [plainly(match) for match in found]
    assert all(match in expected for match in unmarked)
    for match in expected:
        bound = [places[event] for event in ids(match)]
        if max(bound) < border or min(bound) >= border:
            assert match in unmarked


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


def guarded(text: str, constraint_set: ConstraintSet) -> Matcher:
    matcher = Matcher(end_events=constraint_set.end_events)
    matcher.add_pattern(f"PATTERN p EVENT {text}")
    matcher.set_guard(1, Monitor(constraint_set))
    return matcher


def is_accepted(node: Node) -> bool:
    """Whether the language has a place for every NOT of it."""
    try:
        parse_pattern(f"PATTERN p EVENT {describe_node(node)}")
    except PatternRefused:
        return False
    return True


def plainly(match: Match) -> Match:
    """The match without what is said about its trace."""
    return replace(match, deviating=False, would_be_lost=False)


def timed(text: str) -> list[Event]:
    """``"A@1 Z@3"`` as the events of one trace."""
    words = [word.partition("@") for word in text.split()]
    return [Event(id=f"{name}{time}", type=name, time_us=int(time), key="k") for name, _, time in words]


# number, constraints, pattern, trace, ids of the events bound and when and by what each match was decided
ABSENCES = [
    ("N1", [Prior("X", "Z")], "SEQ(A a, NOT X)", "A@1 Z@3 B@5 F@50", [("A1", 3, "constraint")]),
    ("N1", [], "SEQ(A a, NOT X)", "A@1 Z@3 B@5 F@50", [("A1", 50, "trace_end")]),
    ("N2", [Prior("X", "Z")], "SEQ(A a, NOT X)", "A@1 X@2 A@4 Z@5 F@50", [("A4", 5, "constraint")]),
    ("N3", [Exclusive("L", "X")], "SEQ(A a, NOT X)", "L@1 A@2 F@50", [("A2", 2, "constraint")]),
    ("N4", [Require("X", "K"), Prior("K", "Z")], "SEQ(A a, NOT X)", "A@1 Z@2 F@50", [("A1", 2, "constraint")]),
    ("N4", [Require("X", "K"), Prior("K", "Z")], "SEQ(A a, NOT X)", "A@1 K@2 Z@3 F@50", [("A1", 50, "trace_end")]),
    ("N6", [Require("A", "X")], "SEQ(A a, NOT X)", "X@1 A@2 F@50", [("A2", 50, "trace_end")]),
    ("N6", [Require("A", "X")], "SEQ(A a, NOT X)", "A@1 X@2 F@50", []),
    ("N7", [Prior("X", "Z")], "SEQ(A a, NOT X)", "A@1 Z@3 X@5 F@50", [("A1", 3, "constraint")]),
]


@pytest.mark.parametrize(("name", "constraints", "text", "trace_text", "expected"), ABSENCES)
def test_a_not_is_decided_as_soon_as_it_is_certain(
    name: str, constraints: list[Part], text: str, trace_text: str, expected: list[tuple[str, int, str]]
) -> None:
    matcher = guarded(text, ConstraintSet.of([*constraints, End("F")]))
    output = matcher.process(EventBatch.from_events(timed(trace_text)))
    found = [(*ids(match), match.detected_us, match.decided_by) for match in output.matches()]
    assert found == expected, name
    corrections = [(one.event_id, one.time_us) for one in output.corrections()]
    assert corrections == ([("X5", 5)] if name == "N7" else [])


def test_a_match_that_must_see_what_it_forbids_is_given_up_at_once() -> None:
    """N6: r(A,X), ``A``: an X must still come, so the pending match is released."""
    matcher = guarded("SEQ(A a, NOT X)", ConstraintSet.of([Require("A", "X"), End("F")]))
    matcher.process(EventBatch.from_events(timed("A@1")))
    assert matcher.stats.held == 0


@pytest.mark.slow
@pytest.mark.parametrize("prune", [Prune.STATE, Prune.QUERY, Prune.SHADOW, Prune.OFF])
def test_with_absences_no_match_is_lost_on_traces_that_keep_the_constraints(prune: Prune, draws: Draws) -> None:
    random = Random(1)
    matches = 0
    for _ in (cases := draws(150)):
        known = random_set(random, TYPES, random.randrange(1, 7))
        constraint_set = ConstraintSet.of(known.parts, settings=Settings(prune=prune))
        node = random_query(random, TYPES, random.randrange(1, 4), has_absence=True).pattern.event
        if not is_accepted(node):
            continue
        names = random.choices(TYPES, k=10)
        events = keeping(
            constraint_set, [Event(id=f"e{n}", type=name, time_us=n, key="k") for n, name in enumerate(names)]
        )
        pruning, plain = matchers(node, constraint_set)
        found, _ = run(pruning, [EventBatch.from_events(events)])
        expected, _ = run(plain, [EventBatch.from_events(events)])
        by_bindings = [
            sorted(str(replace(match, decided_by=None, detected_us=0)) for match in some) for some in (found, expected)
        ]
        if events and events[-1].type in constraint_set.end_events:
            assert by_bindings[0] == by_bindings[1]
        else:
            early = sum(match.decided_by == "constraint" for match in found)
            assert set(by_bindings[0]) >= set(by_bindings[1])
            assert len(found) - early <= len(expected) <= len(found)
        matches += len(found)
    assert matches > 0.6 * len(cases)


def test_shadow_mode_tells_every_match_of_every_trace(draws: Draws) -> None:
    random = Random(2)
    met = Counter[str]()
    for _ in draws.until(200, lambda: met["lost"] > 10 * draws.share):
        known = random_set(random, TYPES, random.randrange(1, 7))
        constraint_set = ConstraintSet.of(known.constraints, settings=Settings(prune=Prune.SHADOW))
        node = random_query(random, TYPES, random.randrange(1, 4)).pattern.event
        events = [Event(id=f"e{n}", type=name, time_us=n, key="k") for n, name in enumerate(random.choices(TYPES, k=8))]
        shadow, plain = matchers(node, constraint_set)
        evicting = matchers(node, ConstraintSet.of(known.constraints))[0]
        found, _ = run(shadow, [EventBatch.from_events(events)])
        expected, _ = run(plain, [EventBatch.from_events(events)])
        evicted, _ = run(evicting, [EventBatch.from_events(events)])
        assert [plainly(match) for match in found] == expected
        kept = [plainly(match) for match in found if not match.would_be_lost]
        assert kept == [plainly(match) for match in evicted]
        met["lost"] += sum(match.would_be_lost for match in found)
        met["deviations"] += shadow.stats.deviations
    assert met["lost"] > 10 * draws.share
    assert met["deviations"] > 100 * draws.share
