"""The monitor of a set with rules against an exhaustive search over their automata."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

import pytest

from constraints import NOTHING, ConstraintSet, End, Exclusive, Monitor, Prior, Remainder, Require, Rule, remainder_of
from constraints.remainder import single
from constraints.rules.automaton import RuleAutomaton
from house.examples import Draws
from nfa import OTHER, Atom
from tests.builders.constraints import query_of, random_query, random_set
from tests.builders.monitors import after, event

TYPES = "ABCX"

UNARY = ("init", "last")
COUNTED = ("existence", "absence", "exactly")
BINARY = (
    "choice",
    "exclusive choice",
    "response",
    "precedence",
    "succession",
    "alternate response",
    "alternate precedence",
    "chain response",
    "chain precedence",
    "chain succession",
    "not chain succession",
)


def random_rule(random: Random) -> Rule:
    kind = random.choice([*UNARY, *COUNTED, *BINARY])
    if kind in BINARY:
        return Rule(kind, tuple(random.sample("ABC", 2)))
    return Rule(kind, (random.choice("ABC"),), random.choice([1, 2]) if kind in COUNTED else None)


@dataclass(frozen=True)
class Moment:
    shown: frozenset[str]
    places: tuple[int, ...]
    bound: frozenset[int]


@dataclass(frozen=True)
class Oracle:
    """Searches every continuation, with the automata of the rules one by one."""

    constraint_set: ConstraintSet
    remainder: Remainder = NOTHING

    @cached_property
    def automata(self) -> list[RuleAutomaton]:
        return [RuleAutomaton.of(rule) for rule in self.constraint_set.rules]

    def after(self, moment: Moment, name: str) -> Moment | None:
        """After an event that binds nothing; None if it comes too late."""
        if self.constraint_set.blocks(moment.shown, name):
            return None
        places = (one.step(place, frozenset({name})) for one, place in zip(self.automata, moment.places, strict=True))
        return Moment(moment.shown | {name}, tuple(places), moment.bound)

    def following(self, moment: Moment) -> Iterator[Moment]:
        for name in TYPES:
            after = self.after(moment, name)
            if after is not None:
                yield after
                for index, atom in enumerate(self.remainder.atoms):
                    if atom.type == name and index not in moment.bound and self.remainder.before[index] <= moment.bound:
                        yield replace(after, bound=moment.bound | {index})

    def is_done(self, moment: Moment) -> bool:
        return (
            len(moment.bound) == len(self.remainder.atoms)
            and all(place in one.accepting for one, place in zip(self.automata, moment.places, strict=True))
            and all(not one.body <= moment.shown or one.head in moment.shown for one in self.constraint_set.clauses)
        )

    def allows(self, word: list[str]) -> bool:
        moment: Moment | None = Moment(frozenset(), tuple(one.start for one in self.automata), frozenset())
        for name in word:
            moment = None if moment is None else self.after(moment, name)
        waiting = [] if moment is None else [moment]
        reached = set(waiting)
        while waiting:
            moment = waiting.pop()
            if self.is_done(moment):
                return True
            following = set(self.following(moment)) - reached
            reached |= following
            waiting.extend(following)
        return False


def oracle(constraint_set: ConstraintSet, word: list[str], remainder: Remainder = NOTHING) -> bool:
    """Whether some word that begins like this keeps everything and completes the remainder after it."""
    return Oracle(constraint_set, remainder).allows(word)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_rules_alone_are_decided_exactly(seed: int, draws: Draws) -> None:
    random = Random(seed)
    met = {"deviates": 0, "dead": 0, "gone": 0}
    for _ in (cases := draws(250)):
        constraint_set = ConstraintSet.of([random_rule(random) for _ in range(random.randrange(1, 4))])
        query = random_query(random, TYPES, random.randrange(1, 4))
        monitor = Monitor(constraint_set)
        state, word = monitor.start, list[str]()
        if not oracle(constraint_set, word):
            continue
        for name in random.choices(TYPES, k=4):
            moved = monitor.step(state, event(name))
            word.append(name)
            assert (moved is not None) == oracle(constraint_set, word), (constraint_set, word)
            if moved is None:
                met["deviates"] += 1
                break
            state = moved
            expected = [oracle(constraint_set, word, remainder_of(query, one)) for one in query.states]
            assert monitor.live(state, query).tolist() == expected
            can_occur = [monitor.can_occur(state, Atom((other,), other)) for other in TYPES]
            assert can_occur == [oracle(constraint_set, word, single(other)) for other in TYPES]
            met["dead"] += expected.count(False)
            met["gone"] += can_occur.count(False)
    assert min(met.values()) > 0.12 * len(cases), met


def test_with_other_constraints_it_is_never_wrong_and_finds_most(draws: Draws) -> None:
    random = Random(7)
    met = {"deviates": 0, "found dead": 0, "dead": 0}
    for _ in (cases := draws(700)):
        parts = random_set(random, "ABC", random.randrange(1, 4)).parts
        constraint_set = ConstraintSet.of([*parts, random_rule(random), random_rule(random)])
        query = random_query(random, TYPES, random.randrange(1, 3))
        monitor = Monitor(constraint_set)
        state, word = monitor.start, list[str]()
        if not oracle(constraint_set, word):
            continue
        for name in random.choices(TYPES, k=4):
            moved = monitor.step(state, event(name))
            word.append(name)
            if moved is None:
                met["deviates"] += 1
                assert not oracle(constraint_set, word), (constraint_set, word)
                break
            if not oracle(constraint_set, word):
                break
            state = moved
            for one, is_live in zip(query.states, monitor.live(state, query), strict=True):
                can_live = oracle(constraint_set, word, remainder_of(query, one))
                assert is_live or not can_live, (constraint_set, word, one)
                met["dead"] += not can_live
                met["found dead"] += not is_live
    assert met["deviates"] > 3 / 14 * len(cases), met
    assert met["found dead"] > 0.94 * met["dead"] > len(cases) / 7, met


def test_what_only_rules_name_is_in_the_places_alone() -> None:
    monitor = Monitor(ConstraintSet.of([Rule("response", ("A", "B")), Prior("C", "D")]))
    state = after(monitor, "A C X")
    assert state is not None
    assert state.seen == {"C"}
    assert after(monitor, "A B") == monitor.start


def test_rules_that_count_every_event_see_those_of_unnamed_types() -> None:
    monitor = Monitor(ConstraintSet.of([Rule("chain response", ("A", "B"))]))
    state = after(monitor, "A")
    assert state is not None
    assert monitor.step(state, event(OTHER)) is None
    assert monitor.step(state, event("X")) is None
    assert monitor.step(state, event("B")) == monitor.start


def test_a_rule_is_broken_when_what_it_awaits_is_ruled_out() -> None:
    monitor = Monitor(ConstraintSet.of([Rule("response", ("A", "B")), Exclusive("B", "C"), Prior("B", "Z")]))
    assert after(monitor, "A C") is None
    assert after(monitor, "A Z") is None
    assert after(monitor, "C A") is None
    assert after(monitor, "A B Z") is not None


def test_at_the_end_event_rules_must_be_kept() -> None:
    monitor = Monitor(ConstraintSet.of([Rule("existence", ("A",), 2), End("F")]))
    assert after(monitor, "A F") is None
    over = after(monitor, "A A F")
    assert over is not None
    assert not monitor.live(over, query_of("A")).any()


def test_a_rule_ends_partial_matches() -> None:
    monitor = Monitor(ConstraintSet.of([Rule("exactly", ("A",), 2), Require("B", "B2")]))
    query = query_of(("SEQ", "B", "A"))
    living = [monitor.live(state, query).tolist() for state in (after(monitor, "A"), after(monitor, "A A")) if state]
    assert living == [[True, True], [False, False]]
