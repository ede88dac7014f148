"""RETURN and conditions on a finished match."""

from __future__ import annotations

import pytest

from nfa.conditions.projection import project, values_in_matches
from nfa.syntax import (
    Arithmetic,
    Attribute,
    Both,
    Call,
    Column,
    Comparison,
    Either,
    InList,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
)
from streams import Event


def events(*values, event_type="B"):
    return [
        Event(id=f"{event_type}{number}", type=event_type, time_us=number, key="k", data={"v": value, "n": {"x": 1}})
        for number, value in enumerate(values, 1)
    ]


def value(expression, *values):
    (found,) = values_in_matches(expression, [{"b": events(*values)}])
    return found


V = Attribute(("v",), "b")


def test_columns_by_name():
    columns = (
        Column(Attribute(("n", "x"), "b"), "x"),
        Column(Call("count", (Attribute((), "b"),)), "size"),
        Column(Call("id", (Attribute((), "b"),)), "last id"),
        Column(Call("type", (Attribute((), "b"),)), "kind"),
        Column(Arithmetic("-", Call("time", (Attribute((), "b"),)), Literal(5)), "left"),
        Column(Attribute(("v",), "absent"), "absent"),
        Column(Call("id", (Attribute((), "absent"),)), "absent id"),
    )
    (found,) = project(columns, [{"b": events(1, 2)}])
    assert found == {
        "x": 1,
        "size": 2,
        "last id": "B2",
        "kind": "B",
        "left": -3.0,
        "absent": None,
        "absent id": None,
    }


@pytest.mark.parametrize(
    ("name", "values", "result"),
    [
        ("count", [], 0),
        ("count", [1, None, [1]], 1),
        ("sum", [], None),
        ("sum", [None], None),
        ("sum", [1, 2.5, None], 3.5),
        ("sum", [1, True], None),
        ("sum", [1e308, 1e308], None),
        ("avg", [1, 2, None], 1.5),
        ("avg", [1, "x"], None),
        ("min", [3, 2.0, 2, None], 2.0),
        ("max", [1, 2**60, 2.0], 2**60),
        ("min", ["b", "a"], "a"),
        ("max", ["b", 1], None),
        ("max", [True], None),
        ("first", [None, 1], None),
        ("first", [2, 1], 2),
        ("last", [2, "x"], "x"),
        ("last", [], None),
    ],
)
def test_aggregates(name, values, result):
    found = value(Call(name, (V,)), *values)
    assert found == result
    assert type(found) is type(result)


def test_aggregates_take_expressions():
    assert value(Call("sum", (Arithmetic("*", V, V),)), 1, 2, 3) == 14.0


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (Arithmetic("/", Literal(1), Literal(0)), None),
        (Arithmetic("+", Literal("a"), Literal(1)), None),
        (Arithmetic("+", Literal(True), Literal(1)), None),
        (Arithmetic("*", Literal(1e300), Literal(1e300)), None),
        (Negative(Literal(3)), -3.0),
        (Negative(Literal("x")), None),
        (Call("coalesce", (Literal(None), V, Literal(1))), 7),
        (Call("coalesce", (Literal(None),)), None),
        (Comparison("=", Literal(2**53 + 1), Literal(2**53)), False),
        (Comparison("=", Literal(2**53 + 1), Literal(float(2**53))), True),
        (Comparison("<", Literal(True), Literal(False)), None),
        (Comparison("!=", Literal(True), Literal(False)), True),
        (InList(V, (Literal(None), Literal(7))), True),
        (InList(V, (Literal(None), Literal(8))), None),
        (InList(V, (Literal(8),)), False),
        (Not(Literal(1)), None),
        (Both((Literal(False), Literal(None))), False),
        (Both((Literal(True), Literal(None))), None),
        (Either((Literal(True), Literal(None))), True),
        (Either((Literal(False), Literal(1))), None),
        (IsNull(Attribute(("n",), "b")), True),
        (Like(V, "%"), None),
    ],
)
def test_three_valued_logic(expression, result):
    found = value(expression, 7)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("text", "pattern", "is_like"),
    [
        ("abc", "ab%", True),
        ("abc", "ab", False),
        ("", "%", True),
        ("", "_", False),
        ("ä", "_", True),
        ("a\nb", "a_b", True),
        ("a\nb", "a%", True),
        ("a%", "a\\%", True),
        ("ab", "a\\%", False),
        ("a\\", "a\\\\", True),
        ("a\\", "a\\", True),
        ("aXbXc", "%X_", True),
        ("mississippi", "m%iss%ip%i", True),
        ("mississippi", "m%iss%ipz%", False),
        ("ABC", "abc", False),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
    ],
)
def test_like(text, pattern, is_like):
    assert value(Like(Literal(text), pattern)) is is_like


@pytest.mark.parametrize(
    "expression",
    [
        Attribute(("v",)),
        Call("prev", (V,)),
        Call("sum", (Arithmetic("+", V, Attribute(("v",), "c")),)),
        Call("sum", (Literal(1),)),
    ],
)
def test_what_has_no_meaning_in_a_match_is_a_bug(expression):
    with pytest.raises(ValueError, match=r".+"):
        value(expression, 1)
