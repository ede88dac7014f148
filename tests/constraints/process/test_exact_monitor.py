"""The monitor in exact mode against searches that know only the definitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

import pytest

from constraints import (
    NOTHING,
    ConstraintSet,
    End,
    Monitor,
    Part,
    Prior,
    ProcessAutomaton,
    Remainder,
    Require,
    Rule,
    RuleAutomaton,
    Settings,
    following,
    remainder_of,
)
from constraints.exact.outlook import ExactOutlook
from constraints.remainder import single
from house.examples import Draws
from nfa import OTHER, Atom, EventClass, MonitorState, Query, Symbol, parse_step
from tests.builders.constraints import conforms, occurs_in, query_of, random_query, random_set, words
from tests.builders.exact import followed, of_words, random_automaton
from tests.builders.monitors import event

TYPES = "ABCX"  # X is of no workflow


def automaton_of(known: ConstraintSet) -> ProcessAutomaton:
    assert known.process is not None
    assert known.process.automaton is not None
    return known.process.automaton


@dataclass(frozen=True)
class Moment:
    """Where a trace is: the automaton's state, what it has shown, where the rules are, and the atoms bound."""

    place: int
    shown: frozenset[str]
    rules: tuple[int, ...]
    bound: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Oracle:
    """Every continuation, by the automaton, the constraints and the gaps as they are defined."""

    constraint_set: ConstraintSet
    automaton: ProcessAutomaton
    remainder: Remainder = NOTHING

    @cached_property
    def own(self) -> ConstraintSet:
        return self.constraint_set.own

    def after(self, moment: Moment, name: str, automata: list[RuleAutomaton]) -> Moment | None:
        if self.own.blocks(moment.shown, name):
            return None
        is_known = name in (*self.automaton.letters, *self.own.types)
        if self.own.settings.unknown_types == "deviate" and not is_known:
            return None
        place = self.automaton.step(moment.place, name) if name in self.automaton.letters else moment.place
        if place is None:
            return None
        rules = tuple(one.step(at, frozenset({name})) for one, at in zip(automata, moment.rules, strict=True))
        return Moment(place, moment.shown | {name}, rules, moment.bound)

    def following(self, moment: Moment, automata: list[RuleAutomaton]) -> Iterator[Moment]:
        for name in sorted({*TYPES, *self.automaton.letters, *self.own.types, *self.remainder.types} - {"_"}):
            after = self.after(moment, name, automata)
            for bound in () if after is None else self.bindings(moment.bound, name):
                assert after is not None
                is_forbidden = any(
                    gap.type == name and (gap.since or frozenset()) <= moment.bound and not gap.until & bound
                    for gap in self.remainder.gaps
                )
                if not is_forbidden:
                    yield replace(after, bound=bound)

    def bindings(self, bound: frozenset[int], name: str) -> Iterator[frozenset[int]]:
        yield bound
        for index, atom in enumerate(self.remainder.atoms):
            if index not in bound and (atom.is_any_type or atom.type == name) and self.remainder.before[index] <= bound:
                yield bound | {index}

    def is_done(self, moment: Moment, automata: list[RuleAutomaton]) -> bool:
        is_assumed = self.own.settings.completion == "assumed"
        return (
            len(moment.bound) == len(self.remainder.atoms)
            and (not is_assumed or bool(self.automaton.accepting[moment.place]))
            and all(
                at in one.accepting if is_assumed else at not in one.traps
                for one, at in zip(automata, moment.rules, strict=True)
            )
            and all(not one.body <= moment.shown or one.head in moment.shown for one in self.own.clauses)
        )

    def allows(self, word: Iterable[str]) -> bool:
        """Whether some conforming trace begins with a word and has the remainder after it."""
        automata = [RuleAutomaton.of(rule) for rule in self.own.rules]
        moment: Moment | None = Moment(0, frozenset(), tuple(one.start for one in automata))
        for name in word:
            moment = None if moment is None else self.after(moment, name, automata)
        if moment is None or any(gap.since is None and gap.type in moment.shown for gap in self.remainder.gaps):
            return False
        reached, waiting = {moment}, [moment]
        while waiting:
            moment = waiting.pop()
            if self.is_done(moment, automata):
                return True
            following = set(self.following(moment, automata)) - reached
            reached |= following
            waiting.extend(following)
        return False


RULES = [
    *(Rule(kind, ("A",), count) for kind, count in (("existence", 2), ("absence", 2), ("exactly", 1))),
    *(
        Rule(kind, names)
        for kind in ("response", "precedence", "chain response", "choice")
        for names in (("A", "B"), ("C", "X"))
    ),
    Rule("init", ("A",)),
    Rule("last", ("B",)),
]


def random_own(random: Random) -> list[Part]:
    """Now nothing, now orders and clauses, now rules too, over the types of the workflow and another one."""
    parts = list[Part]()
    if random.random() < 0.7:
        parts += random_set(random, "ABCY", random.randrange(1, 4)).parts
    if random.random() < 0.4:
        parts += random.sample(RULES, random.choice([1, 2]))
    return parts


def is_leading(query: Query, index: int) -> bool:
    return any(gap.since is None for gap in remainder_of(query, query.states[index]).gaps)


SETTINGS = [
    Settings(),
    Settings(unknown_types="deviate"),
    Settings(completion="not_assumed"),
]


def follow(random: Random, known: ConstraintSet, query: Query, met: dict[str, int]) -> None:
    """One random trace; at each event all that the monitor says."""
    monitor, automaton = Monitor(known), automaton_of(known)
    state, word = monitor.start, list[str]()
    for name in random.choices(TYPES, weights=[3, 3, 3, 1], k=5):
        word.append(name)
        moved = monitor.step(state, event(name))
        assert (moved is not None) == Oracle(known, automaton).allows(word), (known, word)
        if moved is None:
            met["deviates"] += 1
            word.pop()
            continue
        state = moved
        for index, is_live in enumerate(monitor.live(state, query).tolist()):
            expected = Oracle(known, automaton, remainder_of(query, query.states[index])).allows(word)
            assert is_live == expected or (is_live and is_leading(query, index)), (known, word, query.states[index])
            met["dead"] += not expected
            met["alive"] += expected
        for other in random.sample([*TYPES, "Y", "_"], 2):
            can_occur = monitor.can_occur(state, Atom((other,), "a"))
            assert can_occur == Oracle(known, automaton, single(other)).allows(word), (known, word, other)
            met["gone"] += not can_occur


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS, ids=["plain", "deviate", "not-assumed"])
@pytest.mark.parametrize("seed", range(3))
def test_dead_iff_no_continuation_completes(seed: int, settings: Settings, draws: Draws) -> None:
    random = Random(seed)
    met = {"deviates": 0, "dead": 0, "alive": 0, "gone": 0}
    for _ in draws.until(60, lambda: min(met.values()) > 25 * draws.share):
        automaton = random_automaton(random, "ABC"[: random.randrange(2, 4)], random.randrange(3, 7))
        known = followed(automaton, random_own(random), settings)
        if not Oracle(known, automaton).allows([]):
            continue
        query = random_query(random, "ABCX_", random.randrange(1, 4), has_absence=random.random() < 0.5)
        follow(random, known, query, met)
    assert min(met.values()) > 25 * draws.share, met


def test_against_every_word_of_finite_languages() -> None:
    """On every prefix of a conforming word, a pattern state is live exactly if a conforming rest completes it."""
    random = Random(11)
    met = {True: 0, False: 0}
    for _ in range(120):
        automaton = random_automaton(random, "ABC", 6, is_acyclic=True)
        parts = random_set(random, "ABC", random.randrange(3)).parts
        known = followed(automaton, [part for part in parts if not isinstance(part, End)])
        traces = [word for word in words("ABC", 5) if automaton.accepts(word) and conforms(known.own, word)]
        query = random_query(random, "ABC", random.randrange(1, 4), has_absence=True)
        monitor = Monitor(known)
        states: dict[tuple[str, ...], MonitorState] = {(): monitor.start}
        for trace in traces:
            for size in range(1, len(trace) + 1):
                moved = monitor.step(states[trace[: size - 1]], event(trace[size - 1]))
                assert moved is not None, (known, trace, size)
                states[trace[:size]] = moved
        for prefix, state in states.items() if traces else ():
            rests = [trace[len(prefix) :] for trace in traces if trace[: len(prefix)] == prefix]
            for one, is_live in zip(query.states, monitor.live(state, query), strict=True):
                remainder = remainder_of(query, one)
                if not any(gap.since is None for gap in remainder.gaps):
                    assert is_live == any(occurs_in(remainder, rest) for rest in rests), (known, prefix, one)
                    met[bool(is_live)] += 1
            assert all(monitor.step(state, event(name)) is None for name in "ABC" if (*prefix, name) not in states)
    assert min(met.values()) > 200, met


def test_never_later_than_the_constraints_that_hold_in_the_workflow(draws: Draws) -> None:
    """Whatever they call dead, or a deviation, is so by the automaton; at times more."""
    random = Random(12)
    met = {"both": 0, "exact only": 0}
    for _ in (cases := draws(200)):
        automaton = random_automaton(random, "ABC", random.randrange(3, 8), is_acyclic=random.random() < 0.7)
        known = followed(automaton, random_set(random, "ABC", 1).parts if random.random() < 0.3 else ())
        exact, tables = Monitor(known), Monitor(known.in_tables)
        if Monitor(known).can_occur(exact.start, Atom(("_",), "a")) is False:
            continue
        query = random_query(random, "ABC", random.randrange(1, 4))
        state, other = exact.start, tables.start
        for name in random.choices("ABC", k=6):
            moved, follows = exact.step(state, event(name)), tables.step(other, event(name))
            assert follows is not None or moved is None
            if moved is None or follows is None:
                continue
            state, other = moved, follows
            by_automaton, by_tables = exact.live(state, query), tables.live(other, query)
            assert not (by_automaton & ~by_tables).any(), (known, state)
            met["both"] += int((~by_tables).sum())
            met["exact only"] += int((by_tables & ~by_automaton).sum())
    assert min(met.values()) > len(cases) / 4, met


def test_a_not_from_the_beginning_is_dead_where_every_way_there_breaks_it() -> None:
    monitor = Monitor(followed(of_words("ABC DBC")))
    query = query_of(("SEQ", "NOT A", "C"))
    after_a, after_d = (monitor.step(monitor.start, event(name)) for name in "AD")
    assert after_a == after_d  # the workflow continues in the same way
    assert monitor.live(monitor.start, query).tolist() == [True]
    assert after_a is not None
    assert monitor.live(after_a, query).tolist() == [True]
    strict = Monitor(followed(of_words("ABC DC")))
    state = strict.step(strict.start, event("A"))
    assert state is not None
    assert strict.live(state, query).tolist() == [False]


def test_where_events_of_one_time_are_not_ordered_nothing_more_is_dead() -> None:
    random = Random(13)
    met = {"dead": 0, "alive": 0}
    for _ in range(120):
        known = followed(random_automaton(random, "ABC", 6, is_acyclic=True), random_own(random))
        log, free = Monitor(known), Monitor(known, ties="simultaneous")
        query = random_query(random, "ABCX", random.randrange(1, 4))
        state, other = log.start, free.start
        if not Oracle(known, automaton_of(known)).allows([]):
            continue
        for name in random.choices("ABC", k=4):
            moved, follows = log.step(state, event(name)), free.step(other, event(name))
            if moved is None:
                break
            assert follows is not None
            state, other = moved, follows
            assert not (log.live(state, query) & ~free.live(other, query)).any()
            met["dead"] += int((~free.live(other, query)).sum())
            met["alive"] += int(free.live(other, query).sum())
    assert min(met.values()) > 50, met


def test_other_types_come_after_the_end_of_the_process() -> None:
    monitor = Monitor(followed(of_words("ABF AF")))
    over = monitor.start
    for name in "AXF":
        moved = monitor.step(over, event(name))
        assert moved is not None
        over = moved
    assert [monitor.step(over, event(name)) for name in ("A", "F")] == [None] * 2
    assert [monitor.step(over, event(name)) for name in ("X", OTHER)] == [over] * 2
    assert monitor.live(over, query_of("X")).all()
    assert monitor.can_occur(over, Atom(("_",), "any"))


def test_nothing_comes_after_an_end_event_written_by_hand_not_even_of_other_types() -> None:
    known = followed(of_words("ABF AF"))
    assert known.process is not None
    monitor = Monitor(replace(known, process=replace(known.process, derived_ends=frozenset())))
    over = monitor.start
    for name in "AXF":
        moved = monitor.step(over, event(name))
        assert moved is not None
        over = moved
    assert [monitor.step(over, event(name)) for name in ("A", "F", "X", OTHER)] == [None] * 4
    assert not monitor.live(over, query_of("X")).any()
    assert not monitor.can_occur(over, Atom(("_",), "any"))


def test_other_types_come_until_the_trace_is_over() -> None:
    known = of_words("AB BA")
    monitor = Monitor(followed(known))
    strict = Monitor(followed(known, settings=Settings(unknown_types="deviate", types=frozenset("Y"))))
    either = query_of(("SEQ", "X", "A"))
    assert monitor.live(monitor.start, either).tolist() == [True, True]
    assert strict.live(strict.start, either).tolist() == [False, True]
    assert strict.live(strict.start, query_of(("SEQ", "A", "Y"))).all()
    assert monitor.step(monitor.start, event("X")) is monitor.start
    assert strict.step(strict.start, event("X")) is None
    assert strict.step(strict.start, event("Y")) is strict.start


def test_symbols_of_what_was_written_by_hand_count_beside_it() -> None:
    symbol = Symbol(parse_step("B [v > 1]"))
    own = ConstraintSet.of([Prior("C", symbol.name)], symbols={symbol.name: symbol})
    automaton = of_words("BCD CBD")
    known = following(own, workflow="w", version=1, constraints=(), end_events="D", automaton=automaton)
    monitor, query = Monitor(known), query_of(("SEQ", "B", "C"))
    assert monitor.symbols == (symbol,)
    small = monitor.step(monitor.start, event("B"))
    assert small is not None
    assert monitor.live(small, query).tolist() == [False, True]
    assert monitor.step(monitor.start, EventClass(type="B", symbols=frozenset({symbol.name}))) is None


def test_bits_are_not_there_and_states_begin_with_that_of_the_workflow() -> None:
    known = followed(of_words("ABF AF"), [Rule("response", ("A", "B")), Prior("X", "A")])
    monitor = Monitor(known)
    assert monitor.bits is None
    assert monitor.types == frozenset("ABFX")
    assert monitor.start == MonitorState(places=(0, 0))
    assert monitor.step(monitor.start, event("A")) == MonitorState(seen=frozenset("A"), places=(1, 1))
    assert monitor.step(MonitorState(seen=frozenset("A"), places=(1, 1)), event("F")) is None


def test_a_search_that_is_too_much_work_leaves_the_state_alive() -> None:
    known = followed(of_words("AB BA"), [Require("A", "C"), Prior("C", "B"), Prior("A", "C"), Rule("last", ("B",))])
    process = known.process
    assert process is not None
    exact = ExactOutlook(known, process, automaton_of(known))
    assert not exact.is_jointly_possible(exact.start, single("X"), frozenset({0})) or exact.given_up == 0
    hasty = ExactOutlook(known, process, automaton_of(known), max_steps=0)
    assert hasty.is_jointly_possible(hasty.start, single("X"))
    assert hasty.given_up == 1


def test_many_atoms_on_a_large_automaton_are_judged_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constraints.process.language.TABLE_LIMIT", 1)
    monkeypatch.setattr("constraints.exact.outlook.MEMORY_LIMIT", 1)
    monitor, query = Monitor(followed(of_words("ABCD ACBD"))), query_of(("SEQ", "B", ("AND", "C", "D")))
    state = monitor.step(monitor.start, event("A"))
    assert state is not None
    assert monitor.live(state, query).all()
    for name in "CB":
        state = monitor.step(state, event(name)) if state is not None else None
    assert state is not None
    bound = [
        sorted(one.bound) for one, is_live in zip(query.states, monitor.live(state, query), strict=True) if is_live
    ]
    assert bound == [[0, 1]]
