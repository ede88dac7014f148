"""Traces under bit tables beside tables of monitor states."""

from random import Random
from typing import Any

import numpy as np
import pytest
from numba import njit

from constraints import ConstraintSet, Prior, Require
from nfa import EventClass, MonitorState
from nfa.automata.guard_view import guard_view
from nfa.automata.pattern_automaton import build_automaton
from nfa.guards.bit_fallback import BitFallback
from nfa.kernels import bit_tables as kernel
from nfa.kernels.shared.tables import EVERY_TERM
from streams.kernels.borrowing import borrowed
from tests.builders.constraints import query_of, random_set
from tests.references.bit_tables import BitTables

DEVIANT = 0
TYPES = "ABCDEF"
CLASSES = [EventClass(type=name) for name in TYPES]


class Numbers:
    """The simplest that numbers rows, monitors and lists of kills."""

    def __init__(self, columns):
        self.rows: list[list[int]] = []
        self.monitors: list[tuple[int, int]] = []
        self.kills: list[tuple[int, int] | None] = [None]
        self.live = np.zeros((4096, columns), np.uint32)

    def row_number(self, row):
        content = row.tolist()
        if content not in self.rows:
            self.live[len(self.rows)] = row
            self.rows.append(content)
        return self.rows.index(content)

    def add_row_monitor(self, version, row):
        self.monitors.append((version, row))
        return len(self.monitors) + 99

    def kills_between(self, before, after):
        self.kills.append((before, after))
        return len(self.kills) - 1

    def row_of(self, monitor):
        return self.rows[self.monitors[monitor - 100][1]]


def view_of(tree):
    query = query_of(tree)
    return guard_view(build_automaton(query.pattern), query)


VIEWS = [view_of(("SEQ", "A", ("AND", "B", "C"))), None, view_of(("SEQ", ("OR", "A", "D"), "E", "NOT F"))]
SIZES = [len(VIEWS[0].pattern_states), 2, len(VIEWS[2].pattern_states)]
STATE_RANGE = np.cumsum([0, *SIZES]).astype(np.int32)
NEGATION_RANGE = STATE_RANGE[-1] + np.array([0, 0, 0, 1], np.int32)
LAYOUT = (VIEWS, STATE_RANGE, NEGATION_RANGE)


def expected_row(tables, state):
    """What lives by the twin, in the columns of ``LAYOUT``."""
    row = []
    for view in VIEWS:
        if view is None:
            row += [EVERY_TERM] * 2
        else:
            answers = [not tables.is_dead(state, goal) for goal in tables.goals(view.query)]
            row += view.live_terms(np.array(answers, np.bool_)).tolist()
    (negated,) = VIEWS[2].negations
    (goal,) = tables.goals(negated)
    return [*row, 0 if tables.is_dead(state, goal) else EVERY_TERM]


def fallback_of(guards, **others):
    fallback = BitFallback()
    settings: dict[str, Any] = {
        "when_broken": dict.fromkeys(guards, DEVIANT),
        "is_pruning": dict.fromkeys(guards, True),
    } | others
    fallback.compile(guards, LAYOUT, CLASSES, **settings)
    return fallback


@njit
def advance_trace(bits, live, trace, before, event_class, visit):
    return kernel.advance_trace(borrowed(bits), live, trace, before, event_class, visit)


def moved(fallback, numbers, trace, before, event_class, visit=0):
    for _ in range(5):
        bits = kernel.Fallback(fallback.program, fallback.traces, fallback.links, fallback.notes)
        status, after, kill = advance_trace(bits, numbers.live, trace, before, event_class, visit)
        if status == kernel.DONE:
            return int(after), int(kill)
        fallback.resolve(status, numbers)
    raise AssertionError(status)


def test_traces_go_as_the_twin_says(draws):
    random, compared, broken = Random(1), 0, 0
    for _ in (sets := draws(20)):
        guards = {version: BitTables(random_set(random, TYPES, random.randint(2, 8))) for version in (7, 3)}
        fallback, numbers = fallback_of(guards), Numbers(int(NEGATION_RANGE[-1]))
        fallback.begin(1_000, 100)
        for version, monitor in ((7, 10), (3, 11)):
            fallback.open_from(monitor, version, MonitorState())
        open_traces: dict[int, list[Any]] = {
            trace: [7 if trace % 2 else 3, 10 if trace % 2 else 11, guards[7 if trace % 2 else 3].start]
            for trace in range(80)
        }
        for visit in range(240):
            trace = random.choice(list(open_traces))
            version, before, state = open_traces[trace]
            event_class = random.randrange(len(CLASSES))
            after, kill = moved(fallback, numbers, trace, before, event_class, visit)
            following = guards[version].update(state, guards[version].names_in(CLASSES[event_class]))
            if following is None:
                broken += 1
                assert (after, kill) == (DEVIANT, 0)
                assert fallback.state_of(trace) is None
                assert visit in fallback.noted(np.full(1_000, before, np.int32))
                del open_traces[trace]
                continue
            compared += 1
            assert numbers.row_of(after) == expected_row(guards[version], following)
            assert kill == 0 if after == before else numbers.kills[kill] == (before, after)
            assert fallback.state_of(trace) == (version, MonitorState(seen=guards[version].names(following.seen)))
            open_traces[trace][1:] = [after, following]
    assert compared > 100 * len(sets)
    assert broken > 15 * len(sets)


def test_other_patterns_and_guards_find_the_traces_where_they_were():
    one, other = BitTables(ConstraintSet((Prior("A", "B"),))), BitTables(ConstraintSet((Require("A", "C"),)))
    fallback, numbers = fallback_of({1: one}), Numbers(int(NEGATION_RANGE[-1]))
    monitor = fallback.enter(5, 1, frozenset("B"), numbers)
    assert numbers.row_of(monitor) == expected_row(one, one.enter("B"))
    fallback.compile(
        {0: other, 1: one},
        ([VIEWS[0]], STATE_RANGE[:2], STATE_RANGE[1] + np.zeros(2, np.int32)),
        CLASSES,
        when_broken={0: DEVIANT, 1: DEVIANT},
        is_pruning={0: True, 1: True},
    )
    fewer = Numbers(SIZES[0])
    traces, monitors = fallback.restart(fewer)
    assert traces.tolist() == [5]
    assert fewer.row_of(int(monitors[0])) == expected_row(one, one.enter("B"))[: SIZES[0]]
    assert fallback.state_of(5) == (1, MonitorState(seen=frozenset("B")))
    assert fallback.takes(0)
    assert not fallback.takes(2)


def test_a_guard_that_does_not_prune_has_everything_alive():
    tables = BitTables(ConstraintSet((Prior("A", "B"),)))
    fallback, numbers = fallback_of({1: tables}, is_pruning={1: False}), Numbers(int(NEGATION_RANGE[-1]))
    monitor = fallback.enter(0, 1, frozenset("B"), numbers)
    assert set(numbers.row_of(monitor)) == {EVERY_TERM}


def test_an_ignored_violation_leaves_the_trace_where_it_was():
    tables = BitTables(ConstraintSet((Prior("A", "B"),)))
    fallback, numbers = fallback_of({1: tables}, when_broken={1: kernel.IGNORED}), Numbers(int(NEGATION_RANGE[-1]))
    fallback.begin(10, 10)
    monitor = fallback.enter(0, 1, frozenset("B"), numbers)
    assert moved(fallback, numbers, 0, monitor, TYPES.index("A"), 4) == (monitor, kernel.IGNORED)
    assert fallback.state_of(0) == (1, MonitorState(seen=frozenset("B")))
    assert list(fallback.noted(np.full(10, monitor, np.int32))) == [4]


def test_what_ended_something_is_noted():
    tables = BitTables(ConstraintSet((Prior("A", "B"),)))
    fallback, numbers = fallback_of({1: tables}), Numbers(int(NEGATION_RANGE[-1]))
    fallback.begin(10, 10)
    fallback.open_from(20, 1, MonitorState())
    after, kill = moved(fallback, numbers, 3, 20, TYPES.index("B"), 6)
    assert kill != 0
    before = np.full(10, 20, np.int32)
    assert fallback.noted(before) == {6: (1, MonitorState())}
    assert fallback.after(1, MonitorState(), CLASSES[1]) == MonitorState(seen=frozenset("B"))
    assert moved(fallback, numbers, 3, after, TYPES.index("B"), 7) == (after, 0)
    fallback.begin(10, 10)
    assert fallback.noted(before) == {}


@pytest.mark.parametrize("count", [1, 200])
def test_traces_leave(count):
    tables = BitTables(ConstraintSet((Prior("A", "B"),)))
    fallback, numbers = fallback_of({1: tables}), Numbers(int(NEGATION_RANGE[-1]))
    for trace in range(count):
        fallback.enter(trace, 1, frozenset("A"), numbers)
    assert fallback.arena.used == count
    fallback.arena.release(np.array(range(count), np.int32))
    assert fallback.arena.used == 0
