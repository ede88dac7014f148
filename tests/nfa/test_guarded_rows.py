"""FOR EACH ROW under constraints: each row as a pattern with constants under the same constraints."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from constraints import Clause, Constraint, ConstraintSet, Exclusive, Monitor, Prior, Require, Settings
from house.examples import Draws
from nfa import CaseQuery, Matcher, OnViolation, Prune, Symbol, parse_pattern, parse_step
from streams import Event, EventBatch
from tests.builders.patterns import batches
from tests.nfa.test_rows import Expansion, shapes, tables

TYPES = "ABCD"
ROW = {"v": 1, "w": None, "s": None, "b": None}


def random_constraints(rng: random.Random) -> ConstraintSet:
    found: list[Constraint] = []
    for _ in range(rng.randint(1, 3)):
        first, second, third = rng.sample(TYPES, 3)
        kinds: list[Constraint] = [Prior(first, second), Exclusive(first, second), Require(first, second)]
        found.append(rng.choice([*kinds, Prior(first, first), Clause(frozenset({first, second}), third)]))
    settings = Settings(prune=rng.choice([*Prune]), on_violation=rng.choice([*OnViolation]))
    return replace(
        ConstraintSet(tuple(found), frozenset("D") if rng.random() < 0.2 else frozenset()), settings=settings
    )


def random_text(rng: random.Random) -> str:
    """A pattern of few steps, most of which read the row."""
    numbers = iter(range(9))

    def step() -> str:
        condition = rng.choice([" [v = t.v]", " [v = t.v]", " [v >= t.v]", ""])
        return f"{rng.choice(TYPES)}{rng.choice(['', '', '', '+'])} a{next(numbers)}{condition}"

    parts = [step() for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.2:
        parts = [f"OR(SEQ({', '.join(parts)}), {step()})"]
    if rng.random() < 0.4:
        parts.append(f"NOT {rng.choice(TYPES)} n{rng.choice(['', ' [v = t.v]'])}")
    end = rng.choice(["", "", " WITHIN 6 us", " SELECT ONCE PER KEY", " LIMIT 1"])
    kind = rng.choice(["SEQ", "SEQ", "SEQ", "AND"]) if "NOT" not in parts[-1] else "SEQ"
    return f"PATTERN p FOR EACH ROW OF rules t EVENT {kind}({', '.join(parts)}){end}"


def random_events(rng: random.Random, most_late_us: int) -> list[Event]:
    now, events = 0, []
    for number in range(rng.randint(20, 50)):
        now += rng.choice([0, 1, 1, 2])
        late = rng.choice([0, 0, 0, 0, most_late_us])
        data = {"v": rng.choice([1, 1, 2])}
        name, key = rng.choice("AABBCCDDE"), rng.choice("klmno")
        events.append(Event(id=f"e{number}", type=name, time_us=max(0, now - late), key=key, data=data))
    return events


def untimed(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Results at the end of the input without the detection time: of a row, that of the last event that concerns it."""
    return sorted(one[:6] + one[7:] if one[0] == "match" else one for one in found)


def test_early_terminations_equal_those_of_one_pattern_for_each_row(draws: Draws) -> None:
    met: Counter[str] = Counter()

    def has_met() -> bool:
        return all(met[name] > 4 for name in ("ending", "deviating", "by_constraint", "correction"))

    for number in draws.until(400, has_met):
        rng = random.Random(number)
        text, idle_timeout_us = random_text(rng), rng.choice([None, None, 3])
        events = random_events(rng, 2 if idle_timeout_us is None else 0)
        options: dict[str, Any] = {
            "ties": rng.choice(["log", "log", "simultaneous"]),
            "end_events": rng.choice([(), ("E",)]),
            "idle_timeout_us": idle_timeout_us,
        }
        matcher, meaning = Matcher(**options), Expansion(parse_pattern(text), **options)
        guards = {1: Monitor(random_constraints(rng), ties=options["ties"])}
        matcher.add_pattern(text)
        table = {name: {**ROW, "v": value} for name, value in (("x", 1), ("y", 2), ("z", 1))}
        matcher.read_tables(tables(table))
        meaning.read_rows(table)
        matcher.set_guard(1, guards[1])
        meaning.set_guard(1, guards[1])
        for batch in batches(events, sorted(rng.sample(range(len(events)), rng.randint(0, 3)))):
            found, wanted = shapes(matcher.process(batch)), meaning.process(batch)
            assert found == wanted, (number, text, guards[1], events)
            for kind, *members in found:
                met[kind] += 1
                if kind == "match":
                    met["deviating"] += members[-2]
                    met["lost"] += members[-1]
                    met["by_constraint"] += "constraint" in members
            if rng.random() < 0.3:
                matcher = Matcher.load(matcher.dump(), guards)
                matcher.read_tables(tables(table))
        assert untimed(shapes(matcher.finish())) == untimed(meaning.finish()), (number, text, guards[1], events)
    assert has_met(), met


def one(number: int, name: str, key: str = "k", **data: Any) -> Event:
    return Event(id=f"e{number}", type=name, time_us=number, key=key, data=data)


@pytest.mark.parametrize("cap", [65_536, 1])
def test_an_event_ends_the_partial_matches_of_the_rows_of_its_transaction(cap: int) -> None:
    matcher = Matcher(tracks="listed")
    matcher.add_pattern("PATTERN p FOR EACH ROW OF rules t EVENT SEQ(A a [v >= t.v], B b)")
    matcher.read_tables(tables({name: {**ROW, "v": value} for name, value in (("x", 1), ("y", 2), ("z", 9))}))
    settings = Settings(max_monitor_states=cap)
    matcher.set_guard(1, Monitor(replace(ConstraintSet.of([Exclusive("B", "C")]), settings=settings)))
    matcher.process(EventBatch.from_events([one(1, "A", v=3), one(2, "A", "other", v=3)]))
    assert matcher.stats.held == 4
    found = matcher.process(EventBatch.from_events([one(3, "C")]))
    if cap == 1:  # beyond the cap, the transaction itself continues under bit tables, and its rows are not pruned
        assert (found.endings(), matcher.stats.under_bits, matcher.stats.held) == ([], 1, 4)
        return
    assert [(end.row, end.key, end.event_id) for end in found.endings()] == [
        ({"id": "x"}, "k", "e3"),
        ({"id": "y"}, "k", "e3"),
    ]
    assert (matcher.stats.held, matcher.stats.endings, matcher.stats.released) == (2, 2, 2)
    assert not matcher.process(EventBatch.from_events([one(4, "A", v=9)])).endings()
    assert matcher.stats.held == 2
    states = {case.key: case.patterns[0].state for case in matcher.open_cases(CaseQuery()).cases}
    assert states == {"k": "ended", "other": "alive"}


def test_a_condition_that_constraints_name_decides_for_the_rows() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p FOR EACH ROW OF rules t EVENT SEQ(A a [v = t.v], B b)")
    matcher.read_tables(tables({"x": ROW}))
    high = Symbol(parse_step("C [v > 5]"))
    constraints = replace(ConstraintSet.of([Exclusive("B", high.name)]), symbols={high.name: high})
    matcher.set_guard(1, Monitor(constraints))
    found = matcher.process(EventBatch.from_events([one(1, "A", v=1), one(2, "C", v=5), one(3, "C", v=6)]))
    assert [(end.row, end.event_id, end.event.symbols) for end in found.endings()] == [
        ({"id": "x"}, "e3", frozenset({high.name}))
    ]


def test_a_match_that_time_has_decided_before_a_late_event_deviates_does_not_deviate() -> None:
    """As of patterns without rows: the time of the other transaction has decided it."""
    for text in ("FOR EACH ROW OF rules t EVENT D a [v = t.v] LIMIT 1", "EVENT D a [v = 1] LIMIT 1"):
        matcher = Matcher(ties="simultaneous")
        matcher.add_pattern(f"PATTERN p {text}")
        matcher.read_tables(tables({"x": ROW}))
        constraints = replace(ConstraintSet.of([Exclusive("C", "D")]), settings=Settings(prune=Prune.OFF))
        matcher.set_guard(1, Monitor(constraints))
        late = [one(4, "D", v=1), one(5, "B", "other"), one(6, "B", "other")]
        late[0] = replace(late[0], time_us=2)
        found = matcher.process(EventBatch.from_events([one(1, "C"), one(3, "B", "other"), *late]))
        assert [one.deviating for one in found.matches()] == [False]
        assert len(found.deviations()) == 1
