"""Bit tables against the decision: exact where they promise it, and never wrong."""

from collections import Counter
from random import Random

import pytest

from constraints import NOTHING, Clause, ConstraintSet, Exclusive, Prior, Remainder, Require, parse_constraints
from constraints.model import Rule, Settings
from nfa import Atom, BitGuard, EventClass, Symbol
from tests.builders.constraints import compared, oracle_alive, query_of, random_remainder, random_set, shapes_of
from tests.references.alive import alive
from tests.references.bit_tables import BitTables

TYPES = "ABCDEF"


def parsed(text):
    return parse_constraints([f"{entry.strip()})" for entry in text.split(")") if entry.strip()]).constraint_set


def without_longer_clauses(known):
    kept = [part for part in known.constraints if not (isinstance(part, Clause) and part.is_long)]
    return ConstraintSet(tuple(kept), known.end_events)


def random_case(random, size=(2, 9)):
    known = random_set(random, TYPES, random.randint(*size))
    return known, [random_remainder(random, TYPES + "X", random.randint(1, 4), 0) for _ in range(4)]


def walk(random, known, tables):
    """Consistent prefixes of one random trace with the state of the tables, and how often both called it broken."""
    seen: frozenset[str] = frozenset()
    state = tables.start
    yield seen, state, False
    for _ in range(7):
        name = random.choice(TYPES + "X")
        after = seen | ({name} & known.types)
        is_consistent = not known.blocks(seen, name) and bool(alive(known, after))
        moved = tables.update(state, tables.names_in(EventClass(type=name)))
        if not is_consistent:
            yield after, moved, True
            return
        assert moved is not None
        assert moved == tables.enter(after)
        seen, state = after, moved
        yield seen, state, False


def compare(seed, sets, make, prepare=lambda known: known):
    """How the tables fare on random sets, goals and traces, counted."""
    random = Random(seed)
    counts: Counter[str] = Counter()
    while counts["sets"] < len(sets):
        known, remainders = random_case(random)
        known = prepare(known)
        if not alive(known, frozenset()):
            continue
        counts["sets"] += 1
        tables = make(known)
        goals = [(one, tables.goal(one)) for one in remainders if alive(known, frozenset(), one)]
        for _ in range(3):
            for seen, state, is_broken in walk(random, known, tables):
                if is_broken:
                    counts["broken"] += 1
                    counts["found late"] += state is not None
                    continue
                for remainder, goal in goals:
                    is_dead = not alive(known, seen, remainder)
                    is_called_dead = tables.is_dead(state, goal)
                    counts["pairs"] += 1
                    counts["dead"] += is_dead
                    counts["missed"] += is_dead and not is_called_dead
                    counts["wrong"] += is_called_dead and not is_dead
    return counts


def test_nothing_is_missed_without_longer_clauses(draws):
    counts = compare(1, sets := draws(500), lambda known: BitTables(known, most_in_circle=None), without_longer_clauses)
    assert counts["pairs"] > 40 * len(sets)
    assert counts["dead"] > 5 * len(sets)
    assert counts["broken"] > len(sets)
    assert counts["wrong"] == counts["missed"] == counts["found late"] == 0


def test_looking_for_small_circles_only_is_sound(draws):
    counts = compare(52, draws(500), lambda known: BitTables(known, most_in_circle=0), without_longer_clauses)
    assert counts["wrong"] == 0
    assert 0 < counts["missed"] < 0.02 * counts["dead"]


def test_longer_clauses_are_sound_and_seldom_miss(draws):
    counts = compare(3, sets := draws(500), BitTables)
    assert counts["dead"] > 5 * len(sets)
    assert counts["wrong"] == 0
    assert counts["missed"] <= 0.006 * counts["dead"]  # the figure of the specification


@pytest.mark.slow
def test_watching_clauses_pays(draws):
    watched = compare(4, draws(250), BitTables)
    unwatched = compare(4, draws(250), lambda known: BitTables(known, watched=()))
    assert unwatched["wrong"] == 0
    assert unwatched["missed"] > 4 * watched["missed"]


def test_never_wrong_by_the_oracle():
    random, dead = Random(5), 0
    for _ in range(150):
        known = random_set(random, "ABCD", random.randint(1, 6))
        if not alive(known, frozenset()):
            continue
        tables = BitTables(known)
        remainder = random_remainder(random, "ABCD", random.randint(1, 3), 0)
        for seen, state, is_broken in walk(random, known, tables):
            if not is_broken and tables.is_dead(state, tables.goal(remainder)):
                dead += 1
                assert not oracle_alive(known, seen, remainder)
    assert dead > 50


SYMBOLS = [compared("A", ">", 1), compared("A", ">", 5), compared("B", "<=", 3), compared("B", "=", 7)]


def symbolic_set(random, size):
    symbols = {symbol.name: symbol for symbol in map(Symbol, SYMBOLS)}
    names = [*symbols, "A", "B", "C"]
    drawn = random_set(random, names, size)
    return ConstraintSet(drawn.constraints, drawn.end_events & {"C"}, symbols=symbols)


def symbolic_remainder(random):
    plain = random_remainder(random, "ABC", random.randint(1, 3), 0)
    steps = tuple(
        compared(atom.type, random.choice(["<=", ">", "="]), random.choice([0, 3, 6, 7]), atom.alias)
        if random.random() < 0.5
        else atom
        for atom in plain.atoms
    )
    return Remainder(steps, plain.before)


def test_symbols_are_sound(draws):
    random = Random(6)
    counts: Counter[str] = Counter()
    sets = draws(400)
    while counts["sets"] < len(sets):
        known = symbolic_set(random, random.randint(2, 6))
        if not alive(known, frozenset()):
            continue
        counts["sets"] += 1
        tables, events = BitTables(known), shapes_of("ABC", known, (0, 2, 3, 6, 7))
        remainders = [symbolic_remainder(random) for _ in range(3)]
        seen: frozenset[str] = frozenset()
        state = tables.start
        for _ in range(5):
            for remainder in remainders:
                counts["pairs"] += 1
                if tables.is_dead(state, tables.goal(remainder)):
                    counts["dead"] += 1
                    assert not alive(known, seen, remainder)
                    if random.random() < 0.1:
                        counts["asked"] += 1
                        assert not oracle_alive(known, seen, remainder, shapes=events)
                else:
                    counts["missed"] += not alive(known, seen, remainder)
            event = random.choice(events)
            after = seen | (event.shows & known.names)
            moved = tables.update(
                state, tables.names_in(EventClass(type=event.type, symbols=event.shows - {event.type}))
            )
            if any(known.blocks(seen, name) for name in event.shows) or not alive(known, after):
                break
            assert moved is not None
            seen, state = after, moved
    assert counts["dead"] > 1.25 * len(sets)
    assert counts["asked"] > len(sets) / 8
    assert counts["missed"] <= 0.01 * counts["dead"]


def dead_after(known, prefix, tree, **options):
    """Whether all states that bind nothing are dead after a prefix; the prefix must be consistent."""
    tables, query = BitTables(known, **options), query_of(tree)
    state = tables.enter(prefix.split())
    return all(
        tables.is_dead(state, goal)
        for goal, found in zip(tables.goals(query), query.states, strict=True)
        if not found.bound
    )


@pytest.mark.parametrize(
    ("text", "tree", "living", "dead"),
    [
        ("exclusive(L, U)", "U", "A", "A L"),
        ("require(A, K) prior(K, Z)", "A", "K Z", "Z"),
        ("prior(A, B) prior(B, C) require(E, B)", ("SEQ", "C", "A"), "", "E"),
        ("require(E1, U1) require(E2, U2) prior(B, U1) prior(U1, U2) prior(U2, A)", ("SEQ", "A", "B"), "E1", "E1 E2"),
        ("not_together(E, B, C)", ("AND", "B", "C"), "", "E"),
        ("implication(A, B, K) prior(K, Z)", "B", "Z", "A Z"),
        ("end(Fin)", "Unnamed", "A", "Fin"),
        ("prior(A, B)", ("AND", "B", "A"), "A", "B"),
    ],
)
def test_a_prefix_kills_a_goal(text, tree, living, dead):
    known = parsed(text)
    assert not dead_after(known, living, tree)
    assert dead_after(known, dead, tree)


def test_a_circle_through_three_outside_names_is_found_on_demand():
    known = parsed("require(E, U) require(F, V) require(G, W) prior(B, U) prior(U, V) prior(V, W) prior(W, A)")
    assert not dead_after(known, "E F", ("SEQ", "A", "B"), most_in_circle=None)
    assert dead_after(known, "E F G", ("SEQ", "A", "B"), most_in_circle=None)
    assert not dead_after(known, "E F G", ("SEQ", "A", "B"))


@pytest.mark.parametrize(
    ("text", "trace", "breaks_at"),
    [
        ("prior(A, B)", "B A", "A"),
        ("exclusive(L, U)", "A L U", "U"),
        ("require(A, K) prior(K, Z)", "A Z", "Z"),
        ("require(A, K) prior(K, Z)", "Z A", "A"),
        ("require(A, K) require(B, M) exclusive(K, M)", "A B", "B"),
        ("require(A, K) require(B, M) prior(K, M) prior(M, K)", "A B", "B"),
        ("require(A, K) end(Fin)", "A Fin", "Fin"),
        ("require(A, K) end(Fin)", "A K Fin", None),
        ("end(Fin)", "Fin Unnamed", "Unnamed"),
        ("prior(A, A)", "A A", "A"),
        ("not_together(A, B, C)", "A B C", "C"),
    ],
)
def test_violations(text, trace, breaks_at):
    tables = BitTables(parsed(text))
    state, found = tables.start, None
    for name in trace.split():
        moved = tables.update(state, tables.names_in(EventClass(type=name)))
        if moved is None:
            found = name
            break
        state = moved
    assert found == breaks_at


def test_traces_that_just_stop_need_not_have_what_they_require():
    parts = (Require("A", "K"), Prior("K", "Z"), Exclusive("A", "B"))
    tables = BitTables(ConstraintSet(parts, settings=Settings(completion="not_assumed")))
    state = tables.enter(["Z"])
    (step,) = tables.goals(Atom(("A",), "a"))
    assert not tables.is_dead(state, step)
    assert tables.is_dead(tables.enter(["B"]), step)


def test_a_stranger_breaks_a_trace_where_it_is_said_so():
    settings = Settings(unknown_types="deviate", types=frozenset({"Y"}))
    tables = BitTables(ConstraintSet((Prior("A", "B"),), settings=settings))
    assert tables.update(tables.start, tables.names_in(EventClass(type="Y"))) == tables.start
    assert tables.update(tables.start, tables.names_in(EventClass(type="X"))) is None


def test_a_step_of_several_types_and_of_any():
    tables = BitTables(ConstraintSet((Prior("A", "B"),), frozenset({"Fin"})))
    both, anything = tables.goals(Atom(("A", "C"), "s")), tables.goals(Atom(("_",), "s"))
    after = tables.enter(["B"])
    assert [tables.is_dead(after, goal) for goal in (*both, *anything)] == [True, False, False]
    ended = tables.enter(["Fin"])
    assert [tables.is_dead(ended, goal) for goal in (*both, *anything)] == [True, True, True]


def test_rules_are_left_out():
    known = ConstraintSet((Prior("A", "B"),), rules=(Rule("response", ("B", "R")),))
    tables = BitTables(known)
    assert tables.enter(["B", "R"]) == tables.enter(["B"])
    assert not tables.is_dead(tables.enter(["B"]), tables.goal(NOTHING))


def test_names_and_masks():
    tables = BitTables(ConstraintSet((Prior("A", "B"), Require("C", "D"))))
    guard: BitGuard = tables
    assert guard.names(guard.mask(["A", "D", "unknown"])) == {"A", "D"}
    assert guard.names(tables.enter(["A"]).seen) == {"A"}
    assert len(guard.rules.requires) == 6
