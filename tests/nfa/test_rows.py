"""FOR EACH ROW: one automaton over the traces of rows against one automaton for each row, which is the meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from constraints import Monitor, Settings
from nfa import (
    Attribute,
    Both,
    Column,
    Comparison,
    Expression,
    KeyMismatch,
    Literal,
    Match,
    Matcher,
    OnViolation,
    Pattern,
    PatternRefused,
    Prune,
    describe_pattern,
    match_order,
    parse_pattern,
    pattern_from_json,
    pattern_to_json,
)
from nfa.conditions.over_events import over_events
from nfa.conditions.residuals import with_attributes
from nfa.language.strangers import columns_read
from nfa.syntax import Atom, Conjunction, Disjunction, EachRow, Item, Repeat
from nfa.syntax import Sequence as Ordered
from streams import Event, EventBatch, Ties
from streams.tables import TableForm, Tables
from tests.builders.constraints import constraint_sets
from tests.builders.patterns import FEATURES, batches, patterns, splits
from tests.builders.tables import tables_of

TIES: tuple[Ties, ...] = ("log", "log", "simultaneous")
FORM = TableForm(key=("id",), columns={"id": "text", "v": "integer", "w": "number", "s": "text", "b": "boolean"})
ROWS = st.fixed_dictionaries(
    {
        "v": st.sampled_from([1, 1, 2, 2, 0, None]),
        "w": st.sampled_from([1.0, 2.0, 2.5, None]),
        "s": st.sampled_from([None, "a", "b", "k"]),
        "b": st.sampled_from([None, True, False]),
    }
)
TABLE = st.dictionaries(st.sampled_from(["x", "y", "z"]), ROWS, min_size=1, max_size=3)
COLUMNS = st.sampled_from([Attribute((name,), "t") for name in ("v", "v", "v", "w", "w", "s", "b")])
Table = Mapping[str, Mapping[str, Any]]


@st.composite
def monitors(draw: st.DrawFn, ties: Ties) -> Monitor:
    """A guard by random constraints with a random policy."""
    policy = Settings(prune=draw(st.sampled_from(Prune)), on_violation=draw(st.sampled_from(OnViolation)))
    return Monitor(replace(draw(constraint_sets("ABC", max_size=3)), settings=policy), ties=ties)


def mapped(node: Any, change: Any) -> Any:
    """The event with every condition changed, given the atom."""
    match node:
        case Atom():
            return replace(node, condition=change(node))
        case Repeat():
            until = None if node.until is None else mapped(node.until, change)
            return replace(node, of=mapped(node.of, change), until=until)
        case Ordered():
            return replace(node, items=tuple(mapped_item(item, change) for item in node.items))
        case Conjunction() | Disjunction():
            return replace(node, parts=tuple(mapped(part, change) for part in node.parts))


def mapped_item(item: Item, change: Any) -> Item:
    of = None if item.of is None else mapped(item.of, change)
    return replace(item, of=of, negated=None if item.negated is None else mapped(item.negated, change))


def expanded(pattern: Pattern, row: Mapping[str, Any]) -> Pattern:
    """The pattern of one row: its values in place of the columns."""

    def constant(one: Attribute) -> Expression:
        return Literal(row[one.path[0]]) if one.of == "t" else one

    def own(expression: Expression | None) -> Expression | None:
        return None if expression is None else with_attributes(expression, constant)

    returns = tuple(Column(with_attributes(one.expression, constant), one.name) for one in pattern.returns)
    event = mapped(pattern.event, lambda atom: own(atom.condition))
    return replace(pattern, rows=None, event=event, where=own(pattern.where), returns=returns)


@st.composite
def row_events(draw: st.DrawFn) -> list[Event]:
    """Events whose values are often those of a row. Only steps of any type take a D."""
    value = st.sampled_from([1, 1, 2, 2, 0, None, 2.5, "a"])
    event = st.tuples(st.sampled_from("ABCD"), st.sampled_from("kkkl"), st.sampled_from([0, 1, 1, 2]), value, value)
    rows, now, events = draw(st.lists(event, min_size=3, max_size=9)), 0, []
    for number, (name, key, gap, v, w) in enumerate(rows):
        now += gap
        data = {} if v is None else {"v": v, "w": w}
        events.append(Event(id=f"e{number}", type=name, time_us=now, key=key, data=data))
    return events


@st.composite
def row_patterns(draw: st.DrawFn) -> Pattern:
    """A random pattern some of whose conditions, WHERE and RETURN read the row."""
    pattern = draw(patterns(max_atoms=3, features=FEATURES))
    names = st.sampled_from("vw")
    equality = st.builds(lambda column, name: Comparison("=", Attribute((name,)), column), COLUMNS, names)
    bound = st.builds(
        lambda sign, column: Comparison(sign, Attribute(("v",)), column), st.sampled_from(["<=", ">=", "!="]), COLUMNS
    )

    def changed(atom: Atom) -> Expression | None:
        kind = draw(st.sampled_from(["none", "as is", "equal", "equal", "bound", "both"]))
        if kind == "as is":
            return atom.condition
        parts = [draw(equality)] if kind in ("equal", "both") else []
        parts += [draw(bound)] if kind in ("bound", "both") else []
        return None if not parts else parts[0] if len(parts) == 1 else Both(tuple(parts))

    columns = (Column(draw(COLUMNS), "r"),) if draw(st.booleans()) else ()
    wheres = [Comparison("!=", draw(COLUMNS), Literal(0)), pattern.where, None, None, None]
    event, within_us = mapped(pattern.event, changed), pattern.within_us
    if draw(st.integers(0, 3)) == 0:  # the end of the transaction decides
        event, within_us = Ordered((Item(of=event), Item(negated=Atom(("C",), "absent")))), None
    made = replace(
        pattern,
        rows=EachRow(table="rules", alias="t"),
        event=event,
        within_us=within_us,
        where=draw(st.sampled_from(wheres)),
        returns=(*pattern.returns, *columns),
    )
    try:
        return parse_pattern(describe_pattern(made))
    except PatternRefused as refusal:
        if refusal.reason in ("syntax", "unknown-alias", "duplicate-alias"):
            raise
        reject()


class Expansion:
    """One matcher for each row; a row that changes is another one."""

    def __init__(self, pattern: Pattern, **options: Any) -> None:
        self.pattern, self.options = pattern, options
        self.guards: list[tuple[int, int, Monitor]] = []  # each after a number of batches
        self.read = sorted(columns_read(pattern))
        self.matchers: dict[str, tuple[tuple[Any, ...], Matcher]] = {}
        self.seen: list[EventBatch] = []
        self.found: list[tuple[str, Any]] = []

    def read_rows(self, table: Table) -> None:
        kept = {}
        for name, row in table.items():
            values = tuple(row[column] for column in self.read)
            known = self.matchers.get(name)
            if known is None or known[0] != values:
                known = values, self._begun(expanded(self.pattern, row))
            kept[name] = known
        self.matchers = kept

    def _begun(self, pattern: Pattern) -> Matcher:
        """A matcher whose pattern begins after the events so far."""
        matcher = Matcher(**self.options)
        for number in range(len(self.seen) + 1):
            for since, version, guard in self.guards:
                if since == number:
                    matcher.set_guard(version, guard)
            if number < len(self.seen):
                matcher.process(self.seen[number])
        matcher.add_pattern(describe_pattern(pattern))
        return matcher

    def set_guard(self, version: int, guard: Monitor) -> None:
        for _, matcher in self.matchers.values():
            matcher.set_guard(version, guard)
        self.guards.append((len(self.seen), version, guard))

    @property
    def held(self) -> int:
        return sum(matcher.stats.held for _, matcher in self.matchers.values())

    def process(self, batch: EventBatch) -> list[tuple[Any, ...]]:
        self.seen.append(batch)
        return self._of(lambda matcher: matcher.process(batch))

    def pass_time(self, time_us: int) -> list[tuple[Any, ...]]:
        return self._of(lambda matcher: matcher.pass_time(time_us))

    def finish(self) -> list[tuple[Any, ...]]:
        return self._of(lambda matcher: matcher.finish())

    def _of(self, action: Any) -> list[tuple[Any, ...]]:
        return sorted(
            one for name, (_, matcher) in self.matchers.items() for one in shapes(action(matcher), {"id": name})
        )


def shape_of(match: Match) -> list[str]:
    return [str(one) for one in match_order(match)[:3]]


def shapes(output: Any, row: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """Results of an output in a form that can be compared and sorted; early terminations only of partial matches."""

    def named(one: Any) -> tuple[str, str]:
        return str(one.row if row is None else row), one.key

    found: list[tuple[Any, ...]] = [
        ("match", *named(one), *shape_of(one), one.detected_us, str(one.decided_by), str(dict(one.returns)),
         one.deviating, one.would_be_lost)
        for one in output.matches()
    ]  # fmt: skip
    found += [("timeout", *named(one), str(one.bindings), one.due_us) for one in output.timeouts()]
    found += [("correction", *named(one), str(one.bindings), one.event_id) for one in output.corrections()]
    for lane in output.lanes:
        for state, one in zip(lane.ending_rows[:, 4].tolist(), lane.values_of_endings(), strict=True):
            why = one.guard_version, *map(sorted, (one.before.seen, one.after.seen, one.event.symbols, one.state.bound))
            found += [("ending", *named(one), one.event_id, one.event.type, *why)] if state else []
    return sorted(found)


def tables(table: Table) -> Tables:
    return tables_of("rules", FORM, [{"id": name, **row} for name, row in table.items()])


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_matches_equal_those_of_one_pattern_for_each_row(data: st.DataObject) -> None:
    pattern = data.draw(row_patterns())
    events = data.draw(row_events())
    options: dict[str, Any] = {
        "ties": data.draw(st.sampled_from(TIES)),
        "end_events": data.draw(st.sampled_from([(), (), ("C",)])),
        "idle_timeout_us": data.draw(st.sampled_from([None, None, 2])),
    }
    matcher, meaning = Matcher(**options), Expansion(pattern, **options)
    matcher.add_pattern(describe_pattern(pattern))
    table = data.draw(TABLE)
    matcher.read_tables(tables(table))
    meaning.read_rows(table)
    guards: dict[int, Monitor] = {}
    for batch in batches(events, data.draw(splits(len(events)))):
        if data.draw(st.booleans()):
            guards[len(guards)] = data.draw(monitors(options["ties"]))
            matcher.set_guard(max(guards), guards[max(guards)])
            meaning.set_guard(max(guards), guards[max(guards)])
        assert shapes(matcher.process(batch)) == meaning.process(batch)
        if data.draw(st.booleans()):
            before = tables(table)
            matcher = Matcher.load(matcher.dump(), guards)
            matcher.read_tables(before)
        change = data.draw(st.sampled_from(["nothing", "nothing", "rows", "time"]))
        if change == "rows":
            table = {**table, **data.draw(TABLE)}
            for name in data.draw(st.sets(st.sampled_from(["x", "y", "z"]), max_size=1)) & table.keys():
                del table[name]
            matcher.read_tables(tables(table))
            meaning.read_rows(table)
        elif change == "time" and len(batch):
            time_us = int(batch.time_us.max()) + data.draw(st.integers(0, 3))
            assert shapes(matcher.pass_time(time_us)) == meaning.pass_time(time_us)
            events = []
            break
    assert shapes(matcher.finish()) == meaning.finish()


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("split", [[], [1], [2], [1, 2, 3]], ids=str)
@pytest.mark.parametrize("event", ["SEQ(A a [v = t.v], NOT C)", "SEQ(A+ a [v = t.v] GREEDY, B? b)"])
def test_the_end_of_the_input_decides_at_the_last_event_of_the_transaction(
    event: str, split: list[int], is_saved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nfa.lanes.row_lane._LEAST_TIMES", 0)
    pattern = parse_pattern(f"PATTERN p FOR EACH ROW OF rules t EVENT {event}")
    matcher, meaning = Matcher(), Expansion(pattern)
    matcher.add_pattern(describe_pattern(pattern))
    table = {"x": ROW, "y": {**ROW, "v": 2}}
    matcher.read_tables(tables(table))
    meaning.read_rows(table)
    events = [Event(id=name + key, type=name, time_us=time_us, key=key, data={"v": 1})
              for name, time_us, key in (("A", 0, "k"), ("A", 0, "l"), ("D", 1, "k"), ("E", 2, "m"))]  # fmt: skip
    for batch in batches(events, split):
        assert shapes(matcher.process(batch)) == meaning.process(batch)
        if is_saved:
            matcher = Matcher.load(matcher.dump(), {})
            matcher.read_tables(tables(table))
    found = matcher.finish()
    assert sorted((one.key, one.detected_us) for one in found.matches()) == [("k", 1), ("l", 0)]
    assert shapes(found) == meaning.finish()


@pytest.mark.parametrize("split", [[1], [2], [3], [4], [1, 2, 3, 4, 5]], ids=str)
@pytest.mark.parametrize("steps", ["A a [v = t.v], B b", "A a [v = t.v], NOT D", "A a [v = t.v], B b [v > a.v]"])
def test_an_event_before_the_first_of_a_row_does_not_meet_it_in_any_cut(steps: str, split: list[int]) -> None:
    events = [event(number, name, v=number % 2) for number, name in enumerate("DBADBA")]
    states = []
    for cut in ([], split):
        matcher = Matcher()
        matcher.add_pattern(f"PATTERN p FOR EACH ROW OF rules t EVENT SEQ({steps})")
        matcher.read_tables(tables({"x": ROW, "y": {**ROW, "v": 0}}))
        for batch in batches(events, cut):
            matcher.process(batch)
        states.append(matcher.dump())
    assert states[0] == states[1]


@settings(max_examples=300, deadline=None)
@given(row_patterns())
def test_both_forms_of_a_pattern_read_back_the_same(pattern: Pattern) -> None:
    assert parse_pattern(describe_pattern(pattern)) == pattern
    assert pattern_from_json(pattern_to_json(pattern)) == pattern
    assert over_events(over_events(pattern)) == over_events(pattern)


@pytest.mark.parametrize(
    ("body", "reason", "message"),
    [
        ("EVENT A t", "duplicate-alias", "the alias t of the row is taken by a step"),
        ("EVENT SEQ(A a, NOT B t)", "duplicate-alias", "the alias t of the row is taken by a step"),
        ("EVENT A a [t > 3]", "bare-alias", "t is a row; write a column of it as t.name"),
        ("EVENT A a [t.x.y > 3]", "bare-alias", "t is a row; write a column of it as t.name"),
        ("EVENT A a [a.t.x > 3]", "bare-alias", "t is the row of FOR EACH ROW, and hides the attribute t of a"),
        ("EVENT A a [prev(t.x) > 1]", "prev", "t.x is a value of the row, and prev reads events; write it outside"),
        ("EVENT A+ a WHERE sum(t.x) > 1", "aggregate", "t.x is a value of the row"),
        ("EVENT A a WHERE count(t) > 1", "bare-alias", "t is a row"),
        ("EVENT A a WHERE time(t) > 1", "bare-alias", "t is a row"),
        ("EVENT A a [any(items, price > t.x)]", "function", "names in the last argument of any"),
        ("EVENT SEQ(A a, B b [contains(a.name, t.x)])", "function", "are of several events"),
    ],
)
def test_what_has_no_meaning_for_a_row_is_refused(body: str, reason: str, message: str) -> None:
    with pytest.raises(PatternRefused, match="line 1, column") as caught:
        parse_pattern(f"PATTERN p FOR EACH ROW OF rules t {body}")
    assert caught.value.reason == reason
    assert message in str(caught.value)


def test_finer_keys_beside_rows_are_refused() -> None:
    matcher = Matcher(key_paths=[("order",)])
    matcher.add_pattern("PATTERN p FOR EACH ROW OF rules t EVENT A a WHERE [order]")
    with pytest.raises(KeyMismatch, match=r"WHERE \[v\] would divide its traces further"):
        matcher.add_pattern("PATTERN q FOR EACH ROW OF rules t EVENT A a WHERE [order, v]")


def event(number: int, name: str, **data: Any) -> Event:
    return Event(id=f"e{number}", type=name, time_us=number, key="k", data=data)


ROW = {"v": 1, "w": None, "s": None, "b": None}


def test_events_of_rows_without_equal_values_are_not_read() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p FOR EACH ROW OF rules t EVENT SEQ(A a [v = t.v], B b [v = t.v])")
    matcher.read_tables(tables({f"r{number}": {**ROW, "v": number} for number in range(100)}))
    matcher.process(EventBatch.from_events([event(number, "A", v=7) for number in range(50)]))
    (lane,) = [lane for keys, lane in matcher._lanes.items() if keys]
    assert lane.sequence == 50  # of 5,000 pairs


def test_many_rows_of_one_event_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfa.lanes.row_lane._PAIRS_AT_ONCE", 7)
    matcher = Matcher()
    matcher.add_pattern("PATTERN p FOR EACH ROW OF rules t EVENT SEQ(A a [v = t.v], B b [v = t.v]) RETURN t.v")
    matcher.read_tables(tables({f"r{number}": ROW for number in range(5)}))
    found = matcher.process(EventBatch.from_events([event(1, "A", v=1), event(2, "A", v=1), event(3, "B", v=1)]))
    assert sorted((one.row["id"], one.bindings["a"]) for one in found.matches() if one.row) == sorted(
        (f"r{number}", (f"e{first}",)) for number in range(5) for first in (1, 2)
    )
    assert [lane.first_row for lane in found.lanes if len(lane.matches)] == [2]


def test_a_draining_version_and_rows_that_another_version_reads() -> None:
    matcher = Matcher()
    text = "PATTERN p FOR EACH ROW OF rules t EVENT SEQ(A a [v = t.v], B b [{}]) WITHIN 1 h"
    matcher.add_pattern(text.format("v = t.v"))
    matcher.read_tables(tables({"r": ROW}))
    matcher.process(EventBatch.from_events([event(1, "A", v=1)]))
    matcher.add_pattern(text.format("w = t.w"), version=2, drains=True)
    matcher.read_tables(tables({"r": {**ROW, "w": 2.0}}))
    found = matcher.process(EventBatch.from_events([event(2, "B", v=1, w=2)])).matches()
    assert [(one.version, one.row) for one in found] == [(1, {"id": "r"})]


@pytest.mark.parametrize(
    ("table", "matches"),
    [
        ({"r": ROW}, 1),
        ({"r": {**ROW, "s": "new"}}, 1),
        ({"r": {**ROW, "v": 2}}, 0),
        ({}, 0),
        ({"r": ROW, "other": ROW}, 1),
    ],
    ids=["same", "a column that is not read", "another value", "gone", "another row"],
)
def test_partial_matches_of_a_row_end_when_it_changes_or_vanishes(table: Table, matches: int) -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p FOR EACH ROW OF rules t EVENT SEQ(A a [v = t.v], B b)")
    matcher.read_tables(tables({"r": ROW}))
    matcher.process(EventBatch.from_events([event(1, "A", v=1)]))
    matcher = Matcher.load(matcher.dump(), {})
    matcher.read_tables(tables(table))
    assert matcher.stats.held == matches
    assert len(matcher.process(EventBatch.from_events([event(2, "B")])).matches()) == matches


def test_a_missing_event_is_reported_for_its_row() -> None:
    matcher = Matcher()
    matcher.add_pattern(
        "PATTERN p FOR EACH ROW OF rules t EVENT SEQ(A a [v >= t.v], B b) WITHIN 5 us EMIT TIMEOUTS RETURN t.v AS least"
    )
    matcher.read_tables(tables({"r": ROW, "s": {**ROW, "v": 9}}))
    matcher.process(EventBatch.from_events([event(1, "A", v=3)]))
    assert [(one.row, one.due_us) for one in matcher.pass_time(10).timeouts()] == [({"id": "r"}, 6)]


@pytest.mark.parametrize("split", [0, 1, 2, 3])
def test_versions_by_time_hold_from_the_first_event_of_their_time_on(split: int) -> None:
    first, second = tables({"r": ROW, "s": {**ROW, "v": 2}}), tables({"r": ROW, "s": {**ROW, "v": 3}})
    (old,), (new,) = (one.versions["rules"] for one in (first, second))
    dated = replace(new, version=replace(new.version, version=2, since_us=5))
    matcher = Matcher()
    matcher.add_pattern("PATTERN p FOR EACH ROW OF rules t EVENT SEQ(A a [v = t.v], B b [w >= t.v]) WITHIN 9 us")
    matcher.add_pattern("PATTERN q FOR EACH ROW OF rules t EVENT SEQ(A a [v = t.v], NOT B b) WITHIN 2 us")
    matcher.read_tables(Tables(versions={"rules": (old, dated)}))
    events = [event(1, "A", v=1), event(2, "A", v=2), event(6, "B", w=9), event(7, "A", v=3), event(8, "B", w=9)]
    found = [match for batch in batches(events, [split]) for match in matcher.process(batch).matches()]
    assert sorted((one.pattern, one.row["id"], *one.bindings["a"]) for one in found if one.row) == [
        ("p", "r", "e1"),
        ("p", "r", "e1"),
        ("p", "s", "e7"),
        ("q", "r", "e1"),
        ("q", "s", "e2"),
    ]


@pytest.mark.parametrize(
    ("most", "text", "reason"),
    [(2, "v = t.v", "has 3 rows; at most 2"), (3, "v >= t.v", "may meet 3 of its rows at one step; at most 1")],
)
def test_a_table_that_passes_a_bound_where_it_takes_effect_suspends_the_pattern(
    most: int, text: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nfa.row_bounds.MOST_ROWS", most)
    monkeypatch.setattr("nfa.row_bounds.MOST_ROWS_AT_ONCE", 1)
    matcher = Matcher()
    matcher.add_pattern(f"PATTERN p FOR EACH ROW OF rules t EVENT A a [{text}]")
    matcher.read_tables(tables({f"r{number}": {**ROW, "v": number} for number in range(3)}))
    found = matcher.process(EventBatch.from_events([event(1, "A", v=2)]))
    assert not found.matches()
    (suspension,) = found.overflows()
    assert (suspension.pattern, suspension.suspends, suspension.event_id) == ("p", True, "e1")
    assert reason in suspension.reason
    matcher.read_tables(tables({"r": {**ROW, "v": 2}}))
    found = matcher.process(EventBatch.from_events([event(2, "A", v=2)]))
    assert (len(found.matches()), found.overflows()) == (1, [])
