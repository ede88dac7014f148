"""Step conditions over columns agree with their meaning on one event."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa.conditions import predicates
from nfa.conditions.predicates import ALWAYS, BatchColumns, PredicateTable, evaluate
from nfa.conditions.values import BOOLEAN, FLOAT, INTEGER, NULL, TEXT, Values, classified
from nfa.syntax import (
    ANY_TYPE,
    Arithmetic,
    Atom,
    Attribute,
    Both,
    Call,
    Comparison,
    Either,
    InList,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
)
from streams import Event, EventBatch
from tests.references.patterns.values import value_in_match

V = Attribute(("v",))
THIS = Attribute(())
NULL_LITERAL = Literal(None)

scalars: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([2**53, 2**53 + 1, 2**63, -0.5, 0.0, 1.0, 2.5, 1e308, "", "a", "ab", "ä", "a\nb"]),
)
literals = scalars.map(Literal)
events_ = st.fixed_dictionaries(
    {}, optional={"v": scalars, "w": scalars, "n": st.one_of(st.fixed_dictionaries({"x": scalars}), scalars)}
)
leaves = st.one_of(
    st.sampled_from([V, Attribute(("w",)), Attribute(("n", "x"))]),
    st.sampled_from(["time", "type", "id", "key"]).map(lambda name: Call(name, (THIS,))),
    literals,
)


@st.composite
def trees(draw, depth):
    """Expressions over the current event, of depth at most ``depth``."""
    if depth == 0 or not draw(st.integers(0, 5)):
        return draw(leaves)
    make = draw(st.sampled_from(NODES))
    return make(draw, lambda: draw(trees(depth - 1)))


def several(draw, below):
    return tuple(below() for _ in range(draw(st.integers(2, 3))))


NODES = (
    lambda draw, below: Comparison(draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="])), below(), below()),
    lambda draw, below: Arithmetic(draw(st.sampled_from("+-*/")), below(), below()),
    lambda draw, below: Negative(below()),
    lambda draw, below: Not(below()),
    lambda draw, below: Both(several(draw, below)),
    lambda draw, below: Either(several(draw, below)),
    lambda draw, below: IsNull(below()),
    lambda draw, below: Like(below(), draw(st.text("ab%_\\ä", max_size=4))),
    lambda draw, below: InList(below(), tuple(draw(st.lists(literals, min_size=1, max_size=3)))),
    lambda draw, below: Call("coalesce", several(draw, below)),
)


def events_of(items, types="A"):
    return [
        Event(id=f"e{number}", type=types[number % len(types)], time_us=number, key="k", data=item)
        for number, item in enumerate(items)
    ]


def named(expression):
    """The same with the alias e where none is written, as a finished match wants it."""
    match expression:
        case Attribute():
            return replace(expression, of="e")
        case Comparison() | Arithmetic():
            return replace(expression, left=named(expression.left), right=named(expression.right))
        case IsNull() | Not() | Negative() | Like() | InList():
            return replace(expression, operand=named(expression.operand))
        case Both() | Either():
            return replace(expression, operands=tuple(map(named, expression.operands)))
        case Call():
            return replace(expression, arguments=tuple(map(named, expression.arguments)))
        case _:
            return expression


def plain(values: Values) -> list[object]:
    rows = zip(values.kinds, values.integers, values.floats, values.texts, strict=True)
    return [reading(*row) for row in rows]


def reading(kind, integer, number, text) -> object:
    readings: dict[int, object] = {NULL: None, BOOLEAN: bool(integer), INTEGER: int(integer), FLOAT: float(number)}
    return text if kind == TEXT else readings[int(kind)]


@settings(max_examples=300, deadline=None)
@given(trees(3), st.lists(events_, min_size=1, max_size=6))
def test_columns_agree_with_single_events(expression, items):
    events = events_of(items, "AB")
    rows = np.arange(len(events))
    read = BatchColumns(EventBatch.from_events(events)).read(rows, set(predicates.leaves_of(expression)))
    found = plain(evaluate(expression, read, len(events)))
    expected = [value_in_match(named(expression), {"e": [event]}) for event in events]
    assert [(type(value), value) for value in found] == [(type(value), value) for value in expected]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([("A",), ("B",), ("B", "A"), ("Z",), (ANY_TYPE,)]), trees(1)), max_size=4),
    st.lists(events_, max_size=6),
)
def test_a_row_is_true_on_its_types_where_its_condition_is(steps, items):
    atoms = [Atom(types, "s", condition) for types, condition in steps]
    events = events_of(items, "AAB")
    table = PredicateTable.of(atoms)
    passed = table.evaluate(EventBatch.from_events(events))
    for atom in atoms:
        is_met = [value_in_match(named(atom.condition), {"e": [event]}) is True for event in events]
        is_type = [atom.is_any_type or event.type in atom.types for event in events]
        assert passed[table.row_of(atom)].tolist() == [a and b for a, b in zip(is_met, is_type, strict=True)]


@pytest.mark.parametrize(
    ("condition", "value", "is_true"),
    [
        (Comparison("=", V, Literal(1)), 1, True),
        (Comparison("=", V, Literal(1)), 1.0, True),
        (Comparison("=", V, Literal(1)), True, False),
        (Comparison("=", V, Literal(True)), True, True),
        (Comparison("<", V, Literal(True)), False, False),
        (Comparison("=", V, Literal("1")), 1, False),
        (Comparison("!=", V, Literal(1)), None, False),
        (Not(Comparison("=", V, Literal(1))), None, False),
        (Not(Comparison("=", V, Literal(1))), "x", False),
        (IsNull(V), [1], True),
        (IsNull(V), {"x": 1}, True),
        (Not(IsNull(V)), 0, True),
        (Comparison(">", V, Literal(2**53)), 2**53 + 1, True),
        (Comparison(">", V, Literal("a")), "b", True),
        (InList(V, (Literal(1), NULL_LITERAL)), 2, False),
        (Not(InList(V, (Literal(1), NULL_LITERAL))), 2, False),
        (Not(InList(V, (Literal(1), Literal(3)))), 2, True),
        (V, True, True),
        (V, 1, False),
        (Either((V, IsNull(V))), None, True),
        (Both((V, IsNull(V))), None, False),
        (Comparison("=", Comparison("=", V, Literal(1)), Literal(True)), 1, True),
        (Like(V, "a%"), "abc", True),
        (Like(V, "a%"), 1, False),
        (Comparison("=", Arithmetic("/", V, Literal(2)), Literal(0.5)), 1, True),
        (IsNull(Arithmetic("/", V, Literal(0))), 1, True),
        (IsNull(Arithmetic("*", V, V)), 1e200, True),
        (IsNull(Arithmetic("+", V, Literal(1))), True, True),
        (Comparison("=", Negative(V), Literal(-2)), 2, True),
        (Comparison("=", Call("coalesce", (V, Literal(3))), Literal(3)), None, True),
        (Comparison("=", Call("time", (THIS,)), Literal(0)), 1, True),
        (Comparison("=", Call("type", (THIS,)), Literal("A")), 1, True),
        (Like(Call("id", (THIS,)), "e_"), 1, True),
    ],
)
def test_three_valued_logic(condition, value, is_true):
    atom = Atom(("A",), "a", condition)
    table = PredicateTable.of([atom])
    passed = table.evaluate(EventBatch.from_events(events_of([{"v": value}])))
    assert bool(passed[table.row_of(atom), 0]) is is_true


def above(alias=None, than=1):
    return Comparison(">", Attribute(("v",), alias), Literal(than))


def test_equal_conditions_are_evaluated_once():
    atoms = [Atom(("A",), "a", above("a")), Atom(("A",), "b", above()), Atom(("A",), "x", above("x"))]
    atoms += [Atom(("A", "B"), "x", above()), Atom(("B", "A"), "y", above("y"))]
    table = PredicateTable.of(atoms)
    assert len(table.rows) == 2
    assert [table.row_of(atom) for atom in atoms] == [1, 1, 1, 2, 2]


def test_what_reads_other_events_is_left_out():
    other = Comparison(">", V, Attribute(("v",), "b"))
    both, only = Atom(("A",), "a", Both((other, above()))), Atom(("A",), "a", other)
    table = PredicateTable.of([both, only, Atom(("A",), "c")])
    assert list(table.rows) == [(("A",), above())]
    assert (table.row_of(both), table.row_of(only)) == (1, ALWAYS)


def test_what_reads_other_events_cannot_be_evaluated_on_one():
    with pytest.raises(ValueError, match="sum"):
        evaluate(Call("sum", (V,)), {}, 1)


def test_the_row_without_condition_is_true_everywhere():
    batch = EventBatch.from_events(events_of([{}, {}, {}], "Z"))
    assert PredicateTable.of([]).evaluate(batch)[ALWAYS].all()


def test_a_row_is_parsed_once(monkeypatch):
    parsed = []

    class Counting:
        @staticmethod
        def loads(text):
            parsed.append(text)
            return orjson.loads(text)

    monkeypatch.setattr(predicates, "orjson", Counting)
    atoms = [Atom(types, "a", above(than=n)) for n, types in enumerate([("A",), ("A",), ("A", "B"), (ANY_TYPE,)])]
    batch = EventBatch.from_events(events_of([{"v": number} for number in range(6)], "ABC"))
    PredicateTable.of(atoms).evaluate(batch)
    assert len(parsed) == 6
    parsed.clear()
    PredicateTable.of(atoms[:2]).evaluate(batch)
    assert len(parsed) == 2


def test_decoded_columns_win_over_json():
    batch = EventBatch.from_events(events_of([{"v": 1}, {"v": 1}]))
    decoded = EventBatch(batch.columns, {("v",): pa.array([2, None])})
    table = PredicateTable.of([Atom(("A",), "a", above())])
    assert table.evaluate(batch)[1].tolist() == [False, False]
    assert table.evaluate(decoded)[1].tolist() == [True, False]


@given(st.lists(st.one_of(st.none(), st.floats(), st.integers(-(2**62), 2**62), st.booleans(), st.text(max_size=2))))
def test_arrow_columns_hold_the_same_values_as_plain_ones(items):
    for kind, arrow in ((float, pa.float64()), (int, pa.int64()), (bool, pa.bool_()), (str, pa.string())):
        column = [item if type(item) is kind else None for item in items]
        plain_, typed = Values.of(column), Values.of_arrow(pa.array(column, arrow))
        for name in ("kinds", "integers", "floats", "texts"):
            assert np.array_equal(getattr(plain_, name), getattr(typed, name)), name


@pytest.mark.parametrize(
    ("item", "kind", "value"),
    [(2**63, FLOAT, 2.0**63), (10**400, NULL, None), (float("inf"), NULL, None), ([1], NULL, None), ("x", TEXT, "x")],
)
def test_values_outside_the_language_are_null(item, kind, value):
    assert classified(item) == (kind, value)
