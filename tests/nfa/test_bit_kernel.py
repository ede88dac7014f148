"""The bit kernel against its twin on Python integers, and the arena around it."""

from random import Random
from typing import Any

import numpy as np
from numba import njit

from constraints import Clause, ConstraintSet, Exclusive, Prior, Require
from constraints.model import Constraint
from nfa import Atom, EventClass, build_query
from nfa.automata.guard_view import guard_view
from nfa.automata.pattern_automaton import build_automaton
from nfa.guards.bit_program import BitColumn, as_mask, as_words, bit_columns, bit_program
from nfa.guards.bit_traces import BitArena, RowIndex
from nfa.guards.protocol import BitGoal, BitRules
from nfa.kernels import bit_tables as kernel
from nfa.kernels import bit_upkeep as upkeep
from streams.kernels.borrowing import borrowed
from tests.builders.constraints import Tree, query_of, random_remainder, random_set
from tests.references.bit_tables import BitTables

MANY = [f"N{number:03}" for number in range(150)]
TREES: list[Tree] = [
    "A",
    ("SEQ", "A", "B", "C"),
    ("AND", "A", ("SEQ", "B", "C")),
    ("SEQ", ("OR", "A", "B"), "C"),
    ("AND", ("OR", "A", "B"), ("OR", "C", "D")),
]


@njit
def update(program, guard, state, shown, after):
    return kernel.update(borrowed(program), guard, state, shown, after)


@njit
def weigh(program, traces, slot, shown):
    return kernel.weigh(borrowed(program), borrowed(traces), slot, shown)


@njit
def settle_in(traces, slot):
    kernel.settle_in(borrowed(traces), slot)


@njit
def find_row(index, live, row):
    return kernel.find_row(index, live, row)


@njit
def find_pair(index, before, after):
    return kernel.find_pair(index, before, after)


def wide_set(random):
    """Over many names, dense enough for chains, some clauses of up to four names, few enough to stay consistent."""
    found: list[Constraint] = []
    for _ in range(120):
        one, other = random.sample(MANY, 2)
        kind = random.random()
        if kind < 0.6:
            found.append(Prior(one, other))
        elif kind < 0.75:
            found.append(Exclusive(one, other))
        elif kind < 0.85:
            found.append(Require(one, other))
        else:
            body = frozenset(random.sample(MANY, random.choice([2, 3])))
            head = random.choice(MANY) if len(body) == 2 or kind < 0.93 else None
            found.append(
                Clause(body, None if head in body else head) if len(body) == 3 or head not in body else Prior(one, one)
            )
    return ConstraintSet(tuple(found), frozenset({"N149"}))


class OneByOne:
    """Goals of some remainders in place of those of a query, for columns of one goal each."""

    def __init__(self, tables, remainders):
        self.tables, self.given = tables, [tables.goal(one) for one in remainders]

    @property
    def rules(self):
        return self.tables.rules

    def goals(self, _):
        return self.given


def stepped(program, guard, state, mask):
    after = np.zeros_like(state)
    is_broken = update(program, guard, state, as_words(mask, state.shape[1]), after)
    return None if is_broken else after


def masks(state):
    return tuple(as_mask(row) for row in state)


def follow(random, tables, remainders, program, guard, names):
    """Walk one random trace through kernel and twin; returns how many cells of liveness and of death were compared."""
    words = program.start.shape[2]
    state, twin = np.zeros((kernel.N_SETS, words), np.uint64), tables.start
    upkeep.enter(program, guard, np.zeros(words, np.uint64), state)
    row, cells = np.zeros(program.base.shape[1], np.uint32), [0, 0]
    for _ in range(25):
        assert masks(state) == tuple(twin)
        upkeep.fill_live(program, guard, state, row)
        expected = [not tables.is_dead(twin, tables.goal(one)) for one in remainders]
        assert row.tolist() == [int(is_live) for is_live in expected]
        cells[0] += len(expected)
        cells[1] += expected.count(False)
        shown = tables.names_in(EventClass(type=random.choice(names)))
        before = state.copy()
        after, moved = stepped(program, guard, state, shown), tables.update(twin, shown)
        assert (after is None) == (moved is None)
        assert np.array_equal(before, state)
        if after is not None:
            state, twin = after, moved
            again = np.zeros_like(state)
            upkeep.enter(program, guard, state[kernel.SEEN], again)
            assert np.array_equal(again, state)
    return cells


def program_of(guards):
    columns = [BitColumn(choices=((place, 1),)) for place in range(len(guards[0].given))]
    return bit_program(guards, [Atom(("X",), "x")], columns)


def test_the_kernel_does_what_its_twin_does():
    random, cells = Random(1), np.zeros(2, int)
    for _ in range(60):
        tables = BitTables(random_set(random, "ABCDEF", random.randint(2, 9)))
        remainders = [random_remainder(random, "ABCDEFX", random.randint(1, 4), 0) for _ in range(6)]
        program = program_of([OneByOne(tables, remainders)])
        for _ in range(3):
            cells += follow(random, tables, remainders, program, 0, "ABCDEFX")
    assert cells[0] > 20_000
    assert cells[1] > 2_000


def test_more_names_than_a_word_has_bits():
    random, cells = Random(2), np.zeros(2, int)
    for _ in range(6):
        tables = BitTables(wide_set(random))
        remainders = [random_remainder(random, MANY, random.randint(1, 4), 0) for _ in range(6)]
        program = program_of([OneByOne(tables, remainders)])
        assert program.start.shape[2] > 1
        for _ in range(3):
            cells += follow(random, tables, remainders, program, 0, MANY)
    assert cells[1] > 200


def test_guards_share_a_program():
    random = Random(3)
    tables = [BitTables(wide_set(random)), BitTables(random_set(random, "ABCDEF", 6)), BitTables(ConstraintSet())]
    names = [*MANY, *"ABCDEF"]
    remainders = [random_remainder(random, names, 2, 0) for _ in range(5)]
    program = program_of([OneByOne(one, remainders) for one in tables])
    for guard, one in enumerate(tables):
        follow(random, one, remainders, program, guard, names)


def test_without_a_guard_nothing_is_asked():
    program = bit_program([], [], [BitColumn(base=3)])
    assert program.start.shape == (0, 4, 1)
    assert program.base.shape == (0, 1)


def test_columns_are_what_the_view_says():
    random, places = Random(4), 0
    for tree in TREES:
        query = query_of(tree)
        view = guard_view(build_automaton(query.pattern), query)
        for _ in range(40):
            tables = BitTables(random_set(random, "ABCD", random.randint(1, 6)))
            program = bit_program([tables], [Atom(("A",), "a"), query], bit_columns(view, 1))
            state = np.zeros((kernel.N_SETS, 1), np.uint64)
            upkeep.enter(program, 0, as_words(tables.mask(random.sample("ABCD", 2)), 1), state)
            twin = tables.enter(tables.names(as_mask(state[kernel.SEEN])))
            of_query = np.array([not tables.is_dead(twin, goal) for goal in tables.goals(query)], np.bool_)
            row = np.zeros(len(view.pattern_states), np.uint32)
            upkeep.fill_live(program, 0, state, row)
            assert row.tolist() == view.live_terms(of_query).tolist()
            places += len(row)
    assert places > 500


def test_of_partitions_nothing_is_called_dead_that_is_not():
    tree: Tree = ("SEQ", ("AND", ("OR", "A", "B"), ("OR", "C", "D")), "E")
    query = build_query(query_of(tree).pattern, max_terms=2)
    assert query.partitions
    view = guard_view(build_automaton(query.pattern), query)
    random, dead = Random(5), 0
    for _ in range(150):
        tables = BitTables(random_set(random, "ABCDE", random.randint(1, 6)))
        program = bit_program([tables], [query], bit_columns(view, 0))
        state = np.zeros((kernel.N_SETS, 1), np.uint64)
        upkeep.enter(program, 0, as_words(tables.mask(random.sample("ABCDE", 2)), 1), state)
        twin = tables.enter(tables.names(as_mask(state[kernel.SEEN])))
        of_query = np.array([not tables.is_dead(twin, goal) for goal in tables.goals(query)], np.bool_)
        row = np.zeros(len(view.pattern_states), np.uint32)
        upkeep.fill_live(program, 0, state, row)
        assert np.all(view.live_terms(of_query) & ~row == 0)
        dead += np.sum(row == 0)
    assert dead > 50


class Listed:
    """A guard of given rules and goals."""

    def __init__(self, rules, goals):
        self.rules, self.given = rules, goals

    def goals(self, _):
        return self.given


# Place 0 is what every event shows; the second name requires the third, the fourth blocks the third.
SMALL: Any = Listed(
    BitRules(start=(1, 0, 0, 0), requires=(0, 0b110, 0b100, 0b1000), excludes=(0, 0, 0, 0), blocks=(0, 0, 0, 0b100)),
    [BitGoal(needs=0b101, implies=0b100), BitGoal(needs=0b11, implies=0b110)],
)


def small_program(columns=2):
    choices = [((0, 1),), ((1, 1),), ((0, 2), (1, 4))]
    return bit_program([SMALL], [Atom(("X",), "x")], [BitColumn(base=8, choices=one) for one in choices[:columns]])


def test_an_event_stays_moves_or_breaks():
    program, arena = small_program(), BitArena(traces=4)
    arena.fit(program)
    slot = arena.enter(program, 2, 0, as_words(0, 1))
    traces = arena.arrays
    assert weigh(program, traces, slot, as_words(0b1, 1)) == kernel.STAYS
    assert weigh(program, traces, slot, as_words(0b1001, 1)) == kernel.MOVES
    assert traces.row.tolist() == [8, 8]
    assert arena.live_row(program, slot).tolist() == [9, 9]
    settle_in(traces, slot)
    assert arena.live_row(program, slot).tolist() == [8, 8]
    assert weigh(program, traces, slot, as_words(0b101, 1)) == kernel.BREAKS
    assert weigh(program, traces, slot, as_words(0b11, 1)) == kernel.BREAKS
    assert as_mask(arena.seen(slot)) == 0b1001
    assert arena.live_row(program, slot).tolist() == [8, 8]


def test_slots_are_given_back_and_the_arena_grows():
    program, arena = small_program(), BitArena(traces=1)
    arena.fit(program)
    arena.reach(500)
    slots = [arena.enter(program, trace, 0, as_words(1 << trace % 3, 1)) for trace in range(300)]
    assert sorted(slots) == list(range(300))
    assert arena.used == 300
    arena.release(np.array([7, 8, 499], np.int32))
    assert arena.used == 298
    assert arena.enter(program, 400, 0, as_words(0, 1)) in {slots[7], slots[8]}
    traces, found = arena.slots()
    assert traces.tolist() == [*range(7), *range(9, 300), 400]
    assert [as_mask(arena.seen(slot)) for slot in found[:3]] == [0b1, 0b11, 0b101]
    assert arena.used_bytes > 300 * 32


def test_a_wider_program_keeps_what_the_slots_hold():
    arena = BitArena(traces=2)
    arena.fit(small_program())
    slot = arena.enter(small_program(), 0, 0, as_words(0b1000, 1))
    wide: Any = Listed(
        BitRules(start=(1, 0, 0, 0), requires=(0,) * 130, excludes=(0,) * 130, blocks=(0,) * 130), SMALL.given
    )
    columns = [BitColumn(base=8, choices=((0, 1),)), BitColumn(base=8, choices=((1, 1),)), BitColumn(base=5)]
    program = bit_program([SMALL, wide], [Atom(("X",), "x")], columns)
    arena.fit(program)
    assert as_mask(arena.seen(slot)) == 0b1001
    assert arena.live_row(program, slot).tolist() == [8, 8, 5]
    other = arena.enter(program, 1, 1, as_words(1 << 129, 3))
    assert as_mask(arena.seen(other)) == 1 << 129 | 1
    assert arena.live_row(program, other).tolist() == [9, 9, 5]


def test_rows_and_pairs_are_found_again():
    random = np.random.default_rng(6)
    live = np.unique(random.integers(0, 3, (2_000, 7)).astype(np.uint32), axis=0)
    index = RowIndex()
    for number in range(0, len(live), 2):
        index.add_row(live, number)
    for number, row in enumerate(live):
        assert find_row(index.rows, live, row) == (number if number % 2 == 0 else kernel.NIL)
    for number in range(600):
        index.add_pair(number % 30, number // 30, number)
    for number in range(600):
        assert find_pair(index.pairs, number % 30, number // 30) == number
    assert find_pair(index.pairs, 30, 0) == kernel.NIL


def test_masks_and_words():
    mask = 1 << 149 | 1 << 64 | 5
    assert as_words(mask, 3).tolist() == [5, 1, 1 << 21]
    assert as_mask(as_words(mask, 3)) == mask
