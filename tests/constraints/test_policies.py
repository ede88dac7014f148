"""What becomes of doomed partial matches, by policy, on traces that keep the constraints and on others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from constraints import Clause, Constraint, ConstraintSet, Exclusive, Monitor, Prior, Require
from house.examples import Draws
from nfa import Deviation, Match, Matcher, MatchOutput, OnViolation, Prune
from streams import Event, EventBatch
from tests.builders.constraints import keeping

TYPES = "ABCD"


def random_set(rng: random.Random) -> ConstraintSet:
    kinds: list[Constraint] = []
    for _ in range(rng.randint(1, 5)):
        first, second = rng.sample(TYPES, 2)
        third = rng.choice([name for name in TYPES if name not in first + second])
        drawn: list[Constraint] = [
            Prior(first, second),
            Prior(first, first),
            Exclusive(first, second),
            Require(first, second),
            Clause(frozenset({first, second}), third),
        ]
        kinds.append(rng.choice(drawn))
    return ConstraintSet(tuple(kinds), frozenset("E") if rng.random() < 0.3 else frozenset())


def random_pattern(rng: random.Random) -> str:
    numbers = iter(range(99))

    def part(size: int) -> str:
        if size == 1:
            number = next(numbers)
            return f"{rng.choice(TYPES)} a{number}" + rng.choice(["", "", "", f" [a{number}.v > 2]"])
        cut = rng.randint(1, size - 1)
        return f"{rng.choice(['SEQ', 'SEQ', 'AND', 'OR'])}({part(cut)}, {part(size - cut)})"

    event = part(rng.randint(1, 4))
    if rng.random() < 0.3:
        event = f"SEQ({event}, NOT {rng.choice(TYPES)})"
    elif rng.random() < 0.2:
        event = f"SEQ({event}, NEXT {rng.choice(TYPES)} b)"
    return f"PATTERN p EVENT {event}" + rng.choice(["", "", "", " WITHIN 5 us"])


def random_events(rng: random.Random) -> list[Event]:
    count = rng.randint(1, 14)
    drawn = [(rng.choice(TYPES + "ABCDEZ"), rng.choice("kl")) for _ in range(count)]
    return [
        Event(id=f"e{n}", type=name, time_us=n, key=key, data={"v": rng.randrange(6)})
        for n, (name, key) in enumerate([*drawn, ("E", "k"), ("E", "l")])
    ]


def outputs(
    text: str, events: list[Event], constraint_set: ConstraintSet | None, rng: random.Random, ends: frozenset[str]
) -> tuple[list[MatchOutput], Matcher]:
    """What a matcher finds with random splits. It is saved and loaded, and another pattern comes and goes."""
    matcher = Matcher(end_events=ends)
    matcher.add_pattern(text)
    guards = {}
    if constraint_set is not None:
        guards[1] = Monitor(constraint_set)
        matcher.set_guard(1, guards[1])
    found, rest = [], list(events)
    while rest:
        size = rng.randint(1, len(rest))
        found.append(matcher.process(EventBatch.from_events(rest[:size])))
        rest = rest[size:]
        if rng.random() < 0.3:
            matcher = Matcher.load(matcher.dump(), guards)
        if rng.random() < 0.3:
            matcher.add_pattern("PATTERN another EVENT SEQ(Another a, Other b)")
            matcher.remove_pattern("another")
    return found, matcher


def identities(matches: list[Match]) -> list[tuple[str, str]]:
    return sorted((match.key, repr(sorted(match.bindings.items()))) for match in matches)


def all_matches(found: list[MatchOutput]) -> list[Match]:
    return [match for output in found for match in output.matches()]


def under(constraint_set: ConstraintSet, **settings: Any) -> ConstraintSet:
    return replace(constraint_set, settings=replace(constraint_set.settings, **settings))


def cases(numbers: Iterable[int], seed: int) -> Iterator[tuple[random.Random, ConstraintSet, str, list[Event]]]:
    for number in numbers:
        rng = random.Random(seed * 1_000_003 + number)
        yield rng, random_set(rng), random_pattern(rng), random_events(rng)


@pytest.mark.slow
def test_shadow_mode_tells_what_eviction_loses_and_loses_nothing(draws: Draws) -> None:
    met = Counter[str]()
    for rng, constraint_set, text, events in cases(draws.until(120, lambda: met["lost"] > 0), 105):
        ends = constraint_set.end_events
        plain, _ = outputs(text, events, None, rng, ends)
        evicting, _ = outputs(text, events, constraint_set, rng, ends)
        shadow, matcher = outputs(text, events, under(constraint_set, prune=Prune.SHADOW), rng, ends)
        assert identities(all_matches(shadow)) == identities(all_matches(plain)), (text, constraint_set, events)
        expected = [one for one in all_matches(shadow) if one.would_be_lost]
        corrected = [
            (one.key, repr(sorted(one.bindings.items()))) for output in evicting for one in output.corrections()
        ]
        kept = [one for one in identities(all_matches(evicting)) if one not in corrected]
        missing = sorted(set(identities(all_matches(plain))) - set(kept))
        assert identities(expected) == missing, (text, constraint_set, events)
        assert matcher.stats.shadow_lost == len(expected)
        met["lost"] += len(expected)
    assert met["lost"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_modes_that_release_nothing_find_everything(seed: int, draws: Draws) -> None:
    for rng, constraint_set, text, events in cases(draws(60), 10 + seed):
        ends = constraint_set.end_events
        plain, unguarded = outputs(text, events, None, rng, ends)
        off, matcher = outputs(text, events, under(constraint_set, prune=Prune.OFF), rng, ends)
        assert identities(all_matches(off)) == identities(all_matches(plain))
        assert matcher.stats.endings == 0
        assert matcher.stats.held == unguarded.stats.held


@pytest.mark.slow
def test_by_query_keeps_at_least_what_by_state_keeps(draws: Draws) -> None:
    met = Counter[str]()
    for rng, drawn, text, all_events in cases(draws.until(100, lambda: met["fewer"] > 0), 20):
        kept = tuple(one for one in drawn.constraints if isinstance(one, Prior | Exclusive))
        constraint_set = replace(drawn, constraints=kept)  # nothing is due at the end of a trace
        events, ends = keeping(constraint_set, all_events), constraint_set.end_events
        plain, unguarded = outputs(text, events, None, rng, ends)
        by_query, query = outputs(text, events, under(constraint_set, prune=Prune.QUERY), rng, ends)
        _, state = outputs(text, events, constraint_set, rng, ends)
        assert set(identities(all_matches(by_query))) <= set(identities(all_matches(plain)))
        assert state.stats.deviations == 0
        assert identities(all_matches(by_query)) == identities(all_matches(plain)), (text, constraint_set, events)
        assert state.stats.held <= query.stats.held <= unguarded.stats.held
        met["fewer"] += state.stats.peak_held < query.stats.peak_held
    assert met["fewer"] > 0


def deviation_of(found: list[MatchOutput], key: str) -> Deviation | None:
    return next((one for output in found for one in output.deviations() if one.key == key), None)


@pytest.mark.slow
def test_a_failed_trace_is_looked_at_no_more(draws: Draws) -> None:
    given_up = 0
    for rng, constraint_set, text, events in cases(numbers := draws(80), 30):
        ends = constraint_set.end_events
        plain = [event for event in events if event.type not in ends]
        found, _ = outputs(text, plain, under(constraint_set, on_violation=OnViolation.FAIL_TRACE), rng, ends)
        for key in "kl":
            broken = deviation_of(found, key)
            if broken is not None:
                late = [one for one in all_matches(found) if one.key == key and one.detected_us >= broken.time_us]
                assert late == []
                given_up += 1
    assert given_up > len(numbers) / 8


@pytest.mark.slow
def test_an_ignored_violation_is_counted_and_pruning_goes_on(draws: Draws) -> None:
    ignored = 0
    for rng, constraint_set, text, events in cases(numbers := draws(50), 40):
        ends = constraint_set.end_events
        found, matcher = outputs(text, events, under(constraint_set, on_violation=OnViolation.IGNORE), rng, ends)
        reported, strict = outputs(text, events, constraint_set, rng, ends)
        assert not any(output.deviations() for output in found)
        assert bool(matcher.stats.ignored_violations) >= bool(strict.stats.deviations)
        assert not any(match.deviating for match in all_matches(found))
        assert len(all_matches(found)) <= len(all_matches(reported)) + matcher.stats.corrections
        ignored += matcher.stats.ignored_violations
    assert ignored > len(numbers) / 5


def test_released_counts_what_a_deviating_trace_had_given_up() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b, C c)")
    matcher.set_guard(1, Monitor(ConstraintSet.of([Prior("C", "D")])))
    events = [Event(id=f"e{n}", type=name, time_us=n, key="k") for n, name in enumerate("AABDABC")]
    output = matcher.process(EventBatch.from_events(events))
    assert [one.released for one in output.deviations()] == [3]
    assert output.matches() == []
    assert matcher.stats.released == 3


def test_matches_of_a_deviating_trace_say_so() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, C c)")
    matcher.set_guard(1, Monitor(ConstraintSet.of([Prior("A", "B")])))
    events = [Event(id=f"e{n}", type=name, time_us=n, key="k") for n, name in enumerate("ACBAC")]
    output = matcher.process(EventBatch.from_events(events))
    assert [(match.bindings["c"], match.deviating) for match in output.matches()] == [
        (("e1",), False),
        (("e4",), True),
        (("e4",), True),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_what_time_decides_is_judged_by_what_came_before(size: int) -> None:
    """The NOT is decided when time passes 10 us; the trace deviates before it or after it."""
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, C c, WITHIN 10 us NOT D)")
    matcher.set_guard(1, Monitor(ConstraintSet.of([Prior("A", "B")])))
    steps = [(0, "A", "k"), (1, "C", "k"), (2, "A", "l"), (3, "C", "l"), (4, "B", "k"), (5, "A", "k"), (30, "B", "l")]
    events = [Event(id=f"e{t}", type=name, time_us=t, key=key) for t, name, key in [*steps, (31, "A", "l")]]
    outputs = [matcher.process(EventBatch.from_events(events[n : n + size])) for n in range(0, len(events), size)]
    found = {(match.key, match.deviating) for output in outputs for match in output.matches()}
    assert found == {("k", True), ("l", False)}


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_match_that_an_event_tells_late_is_judged_by_what_came_before_it_was_certain(size: int) -> None:
    """Timeouts let matches wait until time has passed; the event by which it does is the one that deviates."""
    matcher = Matcher(end_events=("C",))
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, D d) WITHIN 9 us EMIT TIMEOUTS")
    matcher.set_guard(1, Monitor(ConstraintSet.of([Exclusive("C", "D")])))
    steps = [(1, "A", "k"), (2, "B", "l"), (3, "D", "k"), (5, "B", "m"), (6, "C", "k")]
    events = [Event(id=f"e{t}", type=name, time_us=t, key=key) for t, name, key in steps]
    outputs = [matcher.process(EventBatch.from_events(events[n : n + size])) for n in range(0, len(events), size)]
    outputs.append(matcher.finish())
    assert matcher.stats.deviations == 1
    found = {(match.bindings["d"], match.deviating) for output in outputs for match in output.matches()}
    assert found == {(("e3",), False)}


def test_a_pattern_can_be_left_out_of_pruning() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b)", is_guarded=False)
    matcher.add_pattern("PATTERN q EVENT SEQ(A a, B b)")
    matcher.set_guard(1, Monitor(ConstraintSet.of([Exclusive("B", "C")])))
    events = [Event(id=f"e{n}", type=name, time_us=n, key="k") for n, name in enumerate("AC")]
    assert [one.pattern for one in matcher.process(EventBatch.from_events(events)).endings()] == ["q"]
    assert matcher.stats.held == 1
    assert Matcher.load(matcher.dump(), {1: Monitor(ConstraintSet.of([Exclusive("B", "C")]))}).stats.held == 1


@pytest.mark.parametrize("most", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)])
def test_beyond_the_cap_of_monitor_states_traces_go_on_under_bit_tables(most: int, draws: Draws) -> None:
    """Without longer clauses the bit tables are exact, so the results are equal."""
    entered = 0
    for rng, drawn, text, events in cases(numbers := draws(80), 50 + most):
        if "NOT" in text:
            continue
        kept = tuple(one for one in drawn.constraints if not (isinstance(one, Clause) and one.is_long))
        constraint_set = replace(drawn, constraints=kept)
        prune = rng.choice([Prune.STATE, Prune.STATE, Prune.SHADOW, Prune.QUERY, Prune.OFF])
        violation = rng.choice(list(OnViolation))
        free = under(constraint_set, prune=prune, on_violation=violation)
        capped = under(free, max_monitor_states=most)
        ends = constraint_set.end_events
        expected, usual = outputs(text, events, free, random.Random(1), ends)
        found, matcher = outputs(text, events, capped, random.Random(2), ends)
        where = (text, [str(part) for part in constraint_set.parts], [(one.type, one.key) for one in events], prune)
        assert identities(all_matches(found)) == identities(all_matches(expected)), where
        for name in ("endings", "deviations", "held", "released", "ignored_violations", "shadow_lost"):
            assert getattr(matcher.stats, name) == getattr(usual.stats, name), (name, *where)
        for each in ("endings", "deviations"):
            told = [
                sorted((one.event_id, one.key, sorted(one.before.seen)) for o in which for one in getattr(o, each)())
                for which in (found, expected)
            ]
            assert told[0] == told[1], (each, *where)
        assert matcher.stats.guard_refusals == 0
        entered += matcher.stats.under_bits
    assert entered > len(numbers) // 20 - 1
