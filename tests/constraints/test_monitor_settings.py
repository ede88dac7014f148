"""The monitor where traces just stop, types are unknown, events show symbols, or times order nothing."""

from __future__ import annotations

from random import Random

from constraints import (
    NOTHING,
    ConstraintSet,
    End,
    Exclusive,
    Monitor,
    Part,
    Prior,
    Require,
    Rule,
    Settings,
    remainder_of,
)
from house.examples import Draws
from nfa import OTHER, Atom, EventClass, MonitorState, Symbol
from tests.builders.constraints import (
    Shape,
    compared,
    oracle_alive,
    query_of,
    random_query,
    random_set,
    random_symbols,
    shapes_of,
)
from tests.builders.monitors import after, event, verdicts

# Traces that just stop


def test_where_completion_is_not_assumed_nothing_need_come() -> None:
    parts: list[Part] = [
        Require("A", "K"),
        Prior("K", "Z"),
        Exclusive("K", "M"),
        Rule("response", ("A", "R")),
        End("F"),
    ]
    strict = Monitor(ConstraintSet.of(parts))
    lenient = Monitor(ConstraintSet.of(parts, settings=Settings(completion="not_assumed")))
    assert after(strict, "A Z") is None
    assert after(strict, "A M") is None
    assert after(strict, "A K F") is None
    for word in ("A Z", "A M", "A K F"):
        assert after(lenient, word) is not None, word
    assert after(lenient, "Z K") is None
    assert after(lenient, "K M") is None


def test_where_completion_is_not_assumed_a_rule_that_is_broken_for_good_still_is() -> None:
    rule = Rule("precedence", ("A", "B"))
    monitor = Monitor(ConstraintSet.of([rule], settings=Settings(completion="not_assumed")))
    assert after(monitor, "B") is None
    assert after(monitor, "A B") is not None


# Types that the process does not know


def test_unknown_types_deviate_where_the_settings_say_so() -> None:
    closed = Settings(unknown_types="deviate", types=frozenset({"K"}))
    monitor = Monitor(ConstraintSet.of([Prior("A", "B"), End("F")], settings=closed))
    assert monitor.types == {"A", "B", "F", "K"}
    for name in "ABK":
        assert after(monitor, name) is not None
    for name in ("X", OTHER):
        assert monitor.step(monitor.start, event(name)) is None


def test_a_closed_process_can_come_to_an_end_before_its_end_event() -> None:
    """Where every known type is blocked, a step of any type takes nothing more."""
    closed = Settings(unknown_types="deviate")
    monitor = Monitor(ConstraintSet.of([Prior("A", "B"), Prior("B", "B")], settings=closed))
    state = after(monitor, "B")
    assert state is not None
    assert not monitor.can_occur(state, Atom(("_",), "any"))
    assert monitor.can_occur(monitor.start, Atom(("_",), "any"))


# Symbols

DEAR, CHEAP = Symbol(compared("Q", ">", 1000)), Symbol(compared("Q", "<=", 1000))


def symbol_set(*parts: Prior | Exclusive | Require | End) -> ConstraintSet:
    return ConstraintSet.of(parts, symbols={DEAR.name: DEAR, CHEAP.name: CHEAP})


def quote(*symbols: Symbol) -> EventClass:
    return EventClass(type="Q", symbols=frozenset(symbol.name for symbol in symbols))


def test_after_approve_no_dear_quote() -> None:
    monitor = Monitor(symbol_set(Prior(DEAR.name, "Approve")))
    assert monitor.types == {"Q", "Approve"}
    assert monitor.symbols == (DEAR,)
    state = monitor.step(monitor.start, event("Approve"))
    assert state is not None
    assert monitor.step(state, quote(DEAR)) is None
    assert monitor.step(state, quote()) is not None
    dear, medium, cheap = (compared("Q", *condition) for condition in ((">", 2000), (">", 500), ("<", 700)))
    assert [monitor.can_occur(state, step) for step in (dear, medium, cheap)] == [False, True, True]
    assert [monitor.can_occur(monitor.start, step) for step in (dear, medium, cheap)] == [True, True, True]


def test_what_no_constraint_names_is_not_remembered() -> None:
    monitor = Monitor(symbol_set(Prior(DEAR.name, "Approve")))
    assert [symbol.name for symbol in monitor.symbols] == [DEAR.name]
    assert monitor.step(monitor.start, quote(CHEAP)) == monitor.start
    state = monitor.step(monitor.start, quote(DEAR))
    assert state is not None
    assert state.seen == {"Q", DEAR.name}


def test_a_seen_symbol_shows_its_type_even_when_the_trace_is_over() -> None:
    monitor = Monitor(symbol_set(Require("A", DEAR.name), End("F")))
    state = monitor.step(monitor.start, event("A"))
    assert state is not None
    assert monitor.step(state, event("F")) is None
    state = monitor.step(state, quote(DEAR))
    assert state is not None
    assert monitor.step(state, event("F")) is not None


def random_shape_walk(random: Random, shapes: list[Shape], length: int) -> list[EventClass]:
    return [
        EventClass(type=shape.type, symbols=shape.shows - {shape.type}) for shape in random.choices(shapes, k=length)
    ]


def test_with_symbols_it_agrees_with_the_reference_and_is_never_wrong(draws: Draws) -> None:
    """What it calls dead, or a deviation, is so by exhaustive search; 600 random sets."""
    random = Random(5)
    met = {"deviates": 0, "dead": 0, "checked": 0}
    for _ in (cases := draws(600)):
        symbols = random_symbols(random, "AB", 2)
        known = random_set(random, ["A", "B", "C", *symbols], random.randrange(1, 6))
        constraint_set = ConstraintSet.of(known.parts, symbols=symbols)
        shapes = shapes_of("ABC", constraint_set, (None, 0, 1, 2, 3))
        query = random_query(random, "ABC", 2)
        monitor = Monitor(constraint_set)
        state = monitor.start
        is_consistent = oracle_alive(constraint_set, frozenset(), NOTHING, shapes=shapes)
        for one in random_shape_walk(random, shapes, 4) if is_consistent else ():
            moved = monitor.step(state, one)
            everything = state.seen | one.symbols | {one.type}
            if moved is None:
                met["deviates"] += 1
                is_blocked = any(constraint_set.blocks(state.seen, name) for name in one.symbols | {one.type})
                assert is_blocked or not oracle_alive(constraint_set, everything, NOTHING, shapes=shapes)
                break
            assert moved.seen <= everything
            state = moved
            row = monitor.live(state, query).tolist()
            assert row == verdicts(constraint_set, state, query)
            for pattern_state, is_live in zip(query.states, row, strict=True):
                met["checked"] += 1
                if not is_live:
                    met["dead"] += 1
                    assert not oracle_alive(
                        constraint_set, state.seen, remainder_of(query, pattern_state), shapes=shapes
                    )
    assert met["deviates"] > len(cases) / 12, met
    assert met["dead"] > len(cases) / 3, met


# Events of one time in no order


def moment(name: str, *, is_later: bool) -> EventClass:
    return EventClass(type=name, is_later=is_later)


def test_order_counts_when_time_moves_on() -> None:
    monitor = Monitor(ConstraintSet.of([Prior("A", "B")]), ties="simultaneous")
    query = query_of("A")
    state = monitor.step(monitor.start, moment("B", is_later=True))
    assert state == MonitorState(seen=frozenset("B"), settled=frozenset())
    assert monitor.live(state, query).tolist() == [True]
    assert monitor.step(state, moment("A", is_later=False)) is not None
    assert monitor.step(state, moment("A", is_later=True)) is None
    moved = monitor.step(state, moment("X", is_later=True))
    assert moved == MonitorState(seen=frozenset("B"), settled=frozenset("B"))
    assert monitor.live(moved, query).tolist() == [False]
    assert not monitor.can_occur(moved, Atom(("A",), "a"))


def test_at_most_once_allows_equal_times() -> None:
    monitor = Monitor(ConstraintSet.of([Prior("A", "A")]), ties="simultaneous")
    state = monitor.step(monitor.start, moment("A", is_later=True))
    assert state is not None
    assert monitor.step(state, moment("A", is_later=False)) is not None
    assert monitor.step(state, moment("A", is_later=True)) is None


def test_a_last_chance_passes_with_time() -> None:
    """r(A,K) p(K,Z): the K may come at the time of the Z; an event of any type that is later shows that it did not."""
    monitor = Monitor(ConstraintSet.of([Require("A", "K"), Prior("K", "Z")]), ties="simultaneous")
    state: MonitorState | None = monitor.start
    for name in "AZ":
        assert state is not None
        state = monitor.step(state, moment(name, is_later=name == "A"))
    assert state is not None
    assert monitor.step(state, moment(OTHER, is_later=True)) is None
    assert monitor.step(state, moment("K", is_later=False)) is not None


def test_other_events_of_its_time_may_come_with_the_end_event() -> None:
    monitor = Monitor(ConstraintSet.of([End("F"), Require("A", "K")]), ties="simultaneous")
    state = monitor.step(monitor.start, moment("A", is_later=True))
    assert state is not None
    over = monitor.step(state, moment("F", is_later=True))
    assert over is not None
    assert monitor.can_occur(over, Atom(("_",), "any"))
    assert monitor.step(over, moment("K", is_later=False)) is not None
    assert monitor.step(over, moment("X", is_later=True)) is None


def test_with_ties_it_agrees_with_the_reference_and_is_never_wrong(draws: Draws) -> None:
    random = Random(6)
    met = {"deviates": 0, "dead": 0}
    for _ in (cases := draws(700)):
        constraint_set = random_set(random, "ABCD", random.randrange(1, 6))
        query = random_query(random, "ABCD", random.randrange(1, 4))
        monitor = Monitor(constraint_set, ties="simultaneous")
        state = monitor.start
        for name in random.choices("ABCDX", k=5) if oracle_alive(constraint_set, frozenset(), NOTHING) else ():
            one = moment(name, is_later=random.random() < 0.5)
            settled = state.seen if one.is_later else state.settled
            seen = state.seen | ({name} & monitor.types)
            moved = monitor.step(state, one)
            assert settled is not None
            if moved is None:
                met["deviates"] += 1
                is_kept = not constraint_set.blocks(settled, name)
                assert not (is_kept and oracle_alive(constraint_set, seen, NOTHING, settled=settled))
                break
            assert moved == MonitorState(seen=seen, settled=settled)
            state = moved
            row = monitor.live(state, query).tolist()
            assert row == verdicts(constraint_set, state, query)
            for pattern_state, is_live in zip(query.states, row, strict=True):
                if not is_live:
                    met["dead"] += 1
                    assert not oracle_alive(constraint_set, seen, remainder_of(query, pattern_state), settled=settled)
    assert min(met.values()) > 2 * len(cases) / 7, met
