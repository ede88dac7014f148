"""The run engine under a guard: what it gives up, what it decides early, and what a broken constraint undoes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nfa.automata.pattern_automaton import PatternAutomaton, build_automaton
from nfa.kernels.runs.tables import BY_CONSTRAINT, BY_TRACE_END, BY_WINDOW, NOT_WAITED
from nfa.kernels.traces import BY_QUERY, EVICT, SHADOW
from nfa.language.parsing import parse_pattern
from streams import Event, Ties
from tests.builders.patterns import FEATURES, patterns, splits, traces
from tests.builders.runs import DEVIATES, FAILS, ResultRecord, RunHarness

BOUNDED = settings(max_examples=150, deadline=None)
both_ties: st.SearchStrategy[Ties] = st.sampled_from(["log", "simultaneous"])
policies = st.sampled_from([EVICT, BY_QUERY, SHADOW])
UNRANKED = FEATURES - {"after", "limit"}
WAITING = (
    "SEQ(A a, NOT B n)",
    "SEQ(A a, NOT B n) WITHIN 4 us",
    "SEQ(A a, C c, NOT B n [v = a.v])",
    "SEQ(A a, WITHIN 2 us NOT B n, NOT C m)",
    "SEQ(A a, WITHIN 3 us NOT B n, WITHIN 5 us NOT C m) WITHIN 6 us",
    "SEQ(A+ a, NOT B n)",
    "SEQ(A a, B? b, NOT C n) WITHIN 5 us",
    "SEQ(AND(A a, B b), NOT C n)",
    "SEQ(NOT C m, A a, NOT B n) WITHIN 5 us",
    "SEQ(A a, NEXT B b, NOT C n)",
)
WAITING_GREEDILY = (
    "SEQ(A a, B+ b GREEDY, NOT C n)",
    "SEQ(A a, STRICT B{1,} b GREEDY, NOT C n) WITHIN 5 us",
    "SEQ(A a, STRICT B* b GREEDY, WITHIN 2 us NOT C n)",
    "OR(SEQ(A a, NOT B n), SEQ(A a, C c, NOT A m))",
    "OR(SEQ(A a, NOT B n), SEQ(A a, NOT C m))",
)
RANKED = (" LIMIT 1", " SELECT SKIP TO NEXT", " SELECT SKIP PAST LAST", " SELECT ONCE PER KEY")


def automaton(text: str) -> PatternAutomaton:
    return build_automaton(parse_pattern("PATTERN p EVENT " + text))


def trace(text: str) -> list[Event]:
    """``A1 B2:5``: an event A at 1, an event B at 2 with v = 5."""
    events = []
    for number, word in enumerate(text.split()):
        body, _, value = word.partition(":")
        data = {"v": int(value)} if value else {}
        events.append(Event(id=f"{body[0]}{number}", type=body[0], time_us=int(body[1:]), key="k", data=data))
    return events


def drawn_automaton(data: st.DataObject, *, features: frozenset[str], texts: Sequence[str]) -> PatternAutomaton:
    """A random pattern, or one of some texts."""
    if data.draw(st.booleans()):
        return build_automaton(data.draw(patterns(features=features)))
    return automaton(data.draw(st.sampled_from(texts)))


def harness(*automata: PatternAutomaton, ties: Ties = "log") -> RunHarness:
    made = RunHarness(ties=ties)
    made.configure(automata)
    return made


def shown(told: Sequence[ResultRecord]) -> list[tuple[str, int]]:
    """Ids of the bound events, and the time."""
    return [(" ".join(event for _, ids in bindings for event in ids), when) for _, _, bindings, when in told]


def identities(told: Sequence[ResultRecord]) -> list[tuple[object, ...]]:
    return sorted((name, bindings) for name, _, bindings, _ in told)


def rows(made: RunHarness, *dead: Sequence[int]) -> NDArray[np.bool_]:
    """Rows of liveness with some columns dead."""
    live = np.ones((len(dead), made.columns), np.bool_)
    for row, columns in enumerate(dead):
        live[row, list(columns)] = False
    return live


def all_knowing(one: PatternAutomaton, made: RunHarness, events: Sequence[Event]) -> NDArray[np.bool_]:
    """What really can come or complete by the types of the events that follow, before each event and after the last.

    What must not follow a match is counted only if its time is later: then it does so however ties are ordered.
    """
    n_states, negations = len(one.states), made.negations[0]
    live = np.zeros((len(events) + 1, made.columns), np.bool_)
    for place in range(len(events) + 1):
        rest = {event.type for event in events[place:]}
        later = {event.type for event in events[place:] if place == 0 or event.time_us > events[place - 1].time_us}
        for atom, column in negations.items():
            live[place, column] = bool(rest) and (atom.is_any_type or not rest.isdisjoint(atom.types))
        states = [bool(one.accepting[state]) and not is_doomed(one, state, later) for state in range(n_states)]
        for _ in range(n_states):
            for step in one.transitions:
                atom = one.atoms[step.atom]
                can_come = bool(rest) and (atom.is_any_type or not rest.isdisjoint(atom.types))
                states[step.source] |= can_come and bool(states[step.target] or one.accepting[step.target])
        live[place, :n_states] = states
    return live


def is_doomed(one: PatternAutomaton, state: int, rest: set[str]) -> bool:
    """Whether every way to wait in an accepting state, where nothing can be bound any more, is refuted by the rest."""
    if one.goes_on[state] or one.pattern.within_us is not None:
        return False

    def is_refuted(number: int, within_us: int | None) -> bool:
        atom = one.outline.negated[number]
        return within_us is None and atom.condition is None and not rest.isdisjoint(atom.types)

    return all(any(is_refuted(n.number, n.within_us) for n in finish.negations) for finish in one.finishes[state])


def fed(
    one: PatternAutomaton,
    events: Sequence[Event],
    live: NDArray[np.bool_] | None = None,
    monitors: Sequence[int] = (),
    *,
    policy: int = EVICT,
    ties: Ties = "log",
    cuts: Sequence[int] = (),
) -> RunHarness:
    """A pattern over one trace, saved and loaded at each cut."""
    made = harness(one, ties=ties)
    for first, last in itertools.pairwise([0, *cuts, len(events)]):
        moves = list(monitors[first : last + 1]) if len(monitors) else []
        made.feed(events[first:last], live=live, monitors=moves, policy=policy)
        if cuts:
            made.reload()
    made.finish()
    return made


@pytest.mark.parametrize(
    ("name", "text", "events", "dead", "told"),
    [
        ("N1", "SEQ(A a, NOT X n)", "A1 Z3 Y50", {1: "X"}, [("A0", 3, BY_CONSTRAINT)]),
        ("N2", "SEQ(A a, NOT X n)", "A1 X2 A4 Z5", {3: "X"}, [("A2", 5, BY_CONSTRAINT)]),
        ("N3", "SEQ(A a, NOT X n)", "L1 A2 Y9", {0: "X"}, [("A1", 2, BY_CONSTRAINT)]),
        ("N4", "SEQ(A a, NOT X n)", "A1 Z2 Y9", {1: "X"}, [("A0", 2, BY_CONSTRAINT)]),
        ("N4, K came", "SEQ(A a, NOT X n)", "A1 K2 Z3 Y9", {}, [("A0", 9, BY_TRACE_END)]),
        ("N5", "SEQ(A a, NOT X n) WITHIN 10 us", "A1 X12", {}, [("A0", 11, BY_WINDOW)]),
        ("N5, at the deadline", "SEQ(A a, NOT X n) WITHIN 10 us", "A1 X11", {}, [("A0", 11, BY_WINDOW)]),
        ("N5, in the window", "SEQ(A a, NOT X n) WITHIN 10 us", "A1 X10", {}, []),
        ("N6, X came", "SEQ(A a, NOT X n)", "X1 A2 Y9", {}, [("A1", 9, BY_TRACE_END)]),
        ("N6", "SEQ(A a, NOT X n)", "A1 Y9", {0: "full"}, []),
        ("N6, later", "SEQ(A a, NOT X n)", "A1 Z4 Y9", {1: "full"}, []),
        ("plain", "SEQ(A a, B b)", "A1 B2", {}, [("A0 B1", 2, NOT_WAITED)]),
        ("two", "SEQ(A a, NOT X n, NOT Y m)", "A1 Z3 Z5", {1: "X", 2: "XY"}, [("A0", 5, BY_CONSTRAINT)]),
        ("own", "SEQ(A a, WITHIN 2 us NOT X n, NOT Y m)", "A1 Z2 Z9", {1: "Y"}, [("A0", 3, BY_WINDOW)]),
        ("own, before", "SEQ(A a, WITHIN 2 us NOT X n, NOT Y m)", "A1 Z5 Z9", {1: "Y"}, [("A0", 5, BY_CONSTRAINT)]),
        ("ranked", "SEQ(A a, NOT X n) LIMIT 1", "A1 A2 Z3 Z4", {2: "X"}, [("A0", 3, BY_CONSTRAINT)]),
        ("greedy", "SEQ(A a, B+ b GREEDY, NOT X n) WITHIN 9 us", "A1 B2 Z3", {2: "X"}, [("A0 B1", 10, BY_WINDOW)]),
    ],
)
def test_waiting_matches_are_told_when_they_are_certain(name, text, events, dead, told):
    one = automaton(text)
    made, sequence = harness(one), trace(events)
    names = {**{atom.type: column for atom, column in made.negations[0].items()}}
    full = next(state for state, accepts in enumerate(one.accepting) if accepts)
    live = np.ones((len(sequence) + 1, made.columns), np.bool_)
    for place in range(len(sequence)):
        for after, gone in dead.items():
            if place >= after:
                live[place + 1, [full] if gone == "full" else [names[letter] for letter in gone]] = False
    monitors = list(range(len(sequence) + 1))
    for cuts in ([], [1]):
        found = fed(one, sequence, live, monitors, cuts=cuts)
        assert [(*match, how) for match, how in zip(shown(found.matches), found.how, strict=True)] == told, (name, cuts)
        assert found.corrections == []
        assert (found.engine.held, found.engine.runs) == (0, 0)


@pytest.mark.parametrize("limit", ["", " LIMIT 5"])
@pytest.mark.parametrize("cuts", [[], [1], [1, 2, 3]])
def test_what_contradicts_a_match_told_early_corrects_it_once(limit, cuts):
    one = automaton("SEQ(A a, NOT X n)" + limit)
    live = rows(harness(one), [], [2])
    found = fed(one, trace("A1 Z3 X5 X6"), live, [0, 0, 1, DEVIATES, DEVIATES], cuts=cuts)
    assert shown(found.matches) == [("A0", 3)]
    assert shown(found.corrections) == [("A0", 5)]


def test_a_correction_comes_within_the_interval_only():
    one = automaton("SEQ(A a, NOT X n) WITHIN 10 us")
    live = rows(harness(one), [], [2])
    for text, corrected in (("A1 Z3 X10", [("A0", 10)]), ("A1 Z3 X11", [])):
        found = fed(one, trace(text), live, [0, 0, 1, DEVIATES])
        assert (shown(found.matches), shown(found.corrections)) == ([("A0", 3)], corrected)


def test_a_match_told_early_is_held_until_its_deadline():
    made = harness(automaton("SEQ(A a, NOT X n) WITHIN 10 us"))
    live = rows(made, [], [2])
    made.feed(trace("A1 Z3"), live=live, monitors=[0, 0, 1])
    assert (shown(made.matches), made.engine.held, made.engine.runs) == ([("A0", 3)], 1, 1)
    made.reload()
    made.pass_time(10)
    assert made.engine.held == 1
    made.pass_time(11)
    assert (made.engine.held, made.engine.runs) == (0, 0)
    assert not made.engine.held_traces(4).any()


def test_a_pattern_that_is_done_in_a_trace_still_corrects():
    one = automaton("SEQ(A a, NOT X n) SELECT ONCE PER KEY")
    live = rows(harness(one), [], [2])
    found = fed(one, trace("A1 Z3 A4 X5 A6"), live, [0, 0, 1, 1, DEVIATES, DEVIATES])
    assert (shown(found.matches), shown(found.corrections)) == ([("A0", 3)], [("A0", 5)])


def test_matches_kept_for_timeouts_are_corrected_too():
    one = automaton("SEQ(A a, NOT X n) WITHIN 20 us EMIT TIMEOUTS")
    live = rows(harness(one), [], [2])
    found = fed(one, trace("A1 Z3 Y4 X5 X6"), live, [0, 0, 1, 1, DEVIATES, DEVIATES])
    assert (shown(found.matches), shown(found.corrections)) == ([("A0", 3)], [("A0", 5)])


def test_after_a_deviation_nothing_is_certain():
    one = automaton("SEQ(A a, WITHIN 4 us NOT X n, NOT Y m) WITHIN 20 us")
    live = rows(harness(one), [], [3])
    found = fed(one, trace("A1 Z2 W3 Z9"), live, [0, 0, 1, DEVIATES, DEVIATES])
    assert (shown(found.matches), found.how) == ([("A0", 21)], [BY_WINDOW])
    found = fed(one, trace("A1 Z2 W5 Z9"), live, [0, 0, 1, DEVIATES, DEVIATES])
    assert (shown(found.matches), found.how) == ([("A0", 5)], [BY_WINDOW])


@pytest.mark.parametrize(("policy", "when"), [(EVICT, 3), (BY_QUERY, 9), (SHADOW, 9)])
def test_only_eviction_decides_early(policy, when):
    one = automaton("SEQ(A a, NOT X n)")
    found = fed(one, trace("A1 Z3 Y9"), rows(harness(one), [], [2]), [0, 0, 1, 1], policy=policy)
    assert shown(found.matches) == [("A0", when)]


def test_a_dead_start_begins_nothing_until_the_trace_deviates():
    one = automaton("SEQ(A a, B b)")
    live = rows(harness(one), [0])
    assert fed(one, trace("A1 B2"), live, [0, 0, 0]).matches == []
    assert shown(fed(one, trace("A1 A2 B3"), live, [0, 0, DEVIATES, DEVIATES]).matches) == [("A1 B2", 3)]


def test_a_failed_trace_tells_what_was_decided_and_nothing_else():
    for limit in ("", " LIMIT 5"):
        one = automaton("SEQ(A a, NOT X n) WITHIN 5 us" + limit)
        found = fed(one, trace("A1 A3 Z6 A7 Z30"), rows(harness(one), []), [0, 0, 0, FAILS, FAILS, FAILS])
        assert shown(found.matches) == [("A0", 6)]
        assert (found.engine.held, found.engine.runs) == (0, 0)
    one = automaton("SEQ(A a, B b)")
    assert fed(one, trace("A1 B2"), rows(harness(one), []), [0, 0, FAILS]).matches == []


def test_what_is_given_up_is_counted_once_for_each_bound_event():
    made = harness(automaton("SEQ(A a, B b, C c)"), automaton("SEQ(A a, B b, D d)"))
    made.feed(trace("A1 A2 B3 B4 X5"), live=rows(made, [], [1, 2]), monitors=[0, 0, 0, 0, 0, 1])
    assert (made.released[0], made.engine.held) == (4, 4)
    assert made.endings == []


def test_an_event_that_a_living_run_still_binds_is_not_given_up():
    made = harness(automaton("SEQ(A a, B b, C c)"))
    made.feed(trace("A1 B2 X3"), live=rows(made, [], [1]), monitors=[0, 0, 0, 1])
    assert (made.released[0], made.engine.held, made.engine.runs) == (0, 2, 1)


@pytest.mark.parametrize(
    ("policy", "dead", "held", "endings"),
    [
        (EVICT, [1], 2, []),  # only A: A and B go on
        (EVICT, [0, 1, 2], 0, ["p"]),
        (BY_QUERY, [1], 2, []),
        (BY_QUERY, [0, 1], 2, []),
        (BY_QUERY, [0, 1, 2], 0, ["p"]),
        (SHADOW, [0, 1, 2], 2, ["p"]),
        (SHADOW, [1], 2, []),
    ],
)
def test_policies_say_what_goes(policy, dead, held, endings):
    made = harness(automaton("SEQ(A a, B b, C c)"))
    live = rows(made, [], dead)
    made.feed(trace("A1 B2 X3"), live=live, monitors=[0, 0, 0, 1], policy=policy)
    assert (made.engine.held, made.endings) == (held, endings)
    assert made.released[0] == 2 - held
    made.feed(trace("X4 A5"), live=live, monitors=[1, 1, 1], policy=policy)
    is_by_query = policy == BY_QUERY and held > 0
    may_begin = policy == SHADOW or is_by_query or 0 not in dead
    assert made.engine.held == held + (may_begin and not (policy == EVICT and 1 in dead))


def test_by_query_gives_up_nothing_once_something_was_told():
    made = harness(automaton("SEQ(A a, B b)"))
    live = rows(made, [], [0, 1])
    made.feed(trace("A1 B2 A3 X4"), live=live, monitors=[0, 0, 0, 0, 1], policy=BY_QUERY)
    made.reload()
    made.feed(trace("A5 B6"), live=live, monitors=[1, 1, 1], policy=BY_QUERY)
    assert [when for _, when in shown(made.matches)] == [2, 6, 6, 6]
    assert (made.endings, made.released[0]) == ([], 0)


@BOUNDED
@given(data=st.data(), ties=both_ties, policy=policies)
def test_a_guard_that_is_right_changes_no_match(data, ties, policy):
    one = drawn_automaton(data, features=UNRANKED, texts=WAITING + WAITING_GREEDILY)
    events = data.draw(traces(max_size=7))
    live = all_knowing(one, harness(one), events)
    plain, monitors = fed(one, events, ties=ties), range(len(events) + 1)
    guarded = fed(one, events, live, monitors, ties=ties, policy=policy)
    if one.may_repeat:
        assert set(identities(guarded.matches)) == set(identities(plain.matches))
    else:
        assert identities(guarded.matches) == identities(plain.matches)
    latest = {identity[2]: identity[3] for identity in sorted(plain.matches, key=lambda told: -told[3])}
    earliest = {identity[2]: identity[3] for identity in sorted(guarded.matches, key=lambda told: -told[3])}
    assert all(earliest[bindings] <= when for bindings, when in latest.items())
    assert guarded.corrections == []
    assert len(guarded.endings) <= 1
    assert guarded.lost == plain.lost


@BOUNDED
@given(data=st.data(), ties=both_ties, policy=policies)
def test_any_guard_is_followed_alike_however_the_stream_is_cut_and_saved(data, ties, policy):
    ranked = tuple(text + rule for text in WAITING + WAITING_GREEDILY for rule in RANKED)
    timed = tuple(text + " EMIT TIMEOUTS" for text in WAITING + WAITING_GREEDILY if text.endswith("us"))
    texts = data.draw(st.sampled_from([WAITING, WAITING_GREEDILY, ranked, timed]))
    one, events = drawn_automaton(data, features=FEATURES, texts=texts), data.draw(traces(max_size=7))
    live, monitors = draw_guard(data, harness(one), events, ends=data.draw(st.sampled_from([None, DEVIATES, FAILS])))
    whole = fed(one, events, live, monitors, ties=ties, policy=policy)
    cut = fed(one, events, live, monitors, ties=ties, policy=policy, cuts=data.draw(splits(len(events))))
    for name in ("matches", "corrections", "timeouts", "endings"):
        assert sorted(getattr(cut, name)) == sorted(getattr(whole, name)), name
    assert sorted(zip(cut.matches, cut.how, strict=True)) == sorted(zip(whole.matches, whole.how, strict=True))
    assert (cut.lost, cut.released[0]) == (whole.lost, whole.released[0])
    assert (whole.engine.held, whole.engine.runs) == (0, 0)


@BOUNDED
@given(data=st.data(), ties=both_ties)
def test_a_shadow_tells_what_no_guard_tells(data, ties):
    one = drawn_automaton(data, features=FEATURES, texts=WAITING + WAITING_GREEDILY)
    events = data.draw(traces(max_size=7))
    live, monitors = draw_guard(data, harness(one), events, ends=data.draw(st.sampled_from([None, DEVIATES])))
    plain, shadow = fed(one, events, ties=ties), fed(one, events, live, monitors, ties=ties, policy=SHADOW)
    assert (shadow.matches, shadow.timeouts, shadow.how) == (plain.matches, plain.timeouts, plain.how)
    assert (shadow.corrections, shadow.released.any()) == ([], False)


@BOUNDED
@given(data=st.data(), ties=both_ties)
def test_what_begins_with_the_deviation_is_found(data, ties):
    one = drawn_automaton(data, features=UNRANKED, texts=WAITING + WAITING_GREEDILY)
    events = data.draw(traces(max_size=7))
    live, monitors = draw_guard(data, harness(one), events, ends=DEVIATES)
    first = monitors.index(DEVIATES) - 1 if DEVIATES in monitors else len(events)
    later = {event.id for event in events[first:]}
    plain, guarded = fed(one, events, ties=ties), fed(one, events, live, monitors, ties=ties)
    new = [told for told in plain.matches if all(later.issuperset(ids) for _, ids in told[2])]
    assert set(identities(new)) <= set(identities(guarded.matches))


@BOUNDED
@given(data=st.data(), ties=both_ties)
def test_a_match_told_wrongly_is_corrected(data, ties):
    one = drawn_automaton(data, features=UNRANKED - {"or", "timeouts", "greedy", "strict"}, texts=WAITING)
    events = data.draw(traces(max_size=7))
    live, monitors = draw_guard(data, harness(one), events, ends=data.draw(st.sampled_from([None, DEVIATES])))
    live[:, : len(one.states)] = True
    plain, guarded = fed(one, events, ties=ties), fed(one, events, live, monitors, ties=ties)
    right, wrong = identities(plain.matches), identities(guarded.corrections)
    assert set(identities(guarded.matches)) == set(right) | set(wrong)
    assert set(right).isdisjoint(wrong)
    assert one.may_repeat or len(wrong) == len(set(wrong))


def draw_guard(
    data: st.DataObject, made: RunHarness, events: Sequence[Event], *, ends: int | None
) -> tuple[NDArray[np.bool_], list[int]]:
    """A guard that is right or wrong: columns die at random, and stay dead; the trace may deviate, or fail, once."""
    n_events, columns = len(events), made.columns
    dies = np.array([data.draw(st.integers(1, 2 * n_events + 1)) for _ in range(columns)])
    live = np.arange(n_events + 1)[:, None] < dies[None, :]
    monitors = list(range(n_events + 1))
    if ends is not None:
        last = data.draw(st.integers(0, n_events))
        monitors[last + 1 :] = [ends] * (n_events - last)
    return live, monitors
