"""A step condition is split into the conjuncts that read the current event only and the residual."""

from __future__ import annotations

import pytest

from nfa.conditions.residuals import is_unary, split_condition, without_alias
from nfa.syntax import Arithmetic, Atom, Attribute, Both, Call, Comparison, Either, InList, IsNull, Like, Literal, Not

V = Attribute(("v",))
A_V = Attribute(("v",), "a")
B_V = Attribute(("v",), "b")
ONE = Literal(1)
OWN = Comparison(">", V, ONE)
OTHER = Comparison(">", V, B_V)
RUNNING = Comparison("<=", Call("sum", (V,)), ONE)
PREVIOUS = Comparison(">", V, Call("coalesce", (Call("prev", (V,)), ONE)))


@pytest.mark.parametrize(
    ("condition", "unary", "residual"),
    [
        (None, None, None),
        (OWN, OWN, None),
        (OTHER, None, OTHER),
        (RUNNING, None, RUNNING),
        (PREVIOUS, None, PREVIOUS),
        (Both((OWN, OTHER)), OWN, OTHER),
        (Both((OTHER, OWN, RUNNING, IsNull(V))), Both((OWN, IsNull(V))), Both((OTHER, RUNNING))),
        (Both((Both((OWN, OTHER)), IsNull(V))), Both((OWN, IsNull(V))), OTHER),
        (Either((OWN, OTHER)), None, Either((OWN, OTHER))),
        (Not(Both((OWN, OTHER))), None, Not(Both((OWN, OTHER)))),
        (Comparison(">", A_V, ONE), OWN, None),
        (Comparison("<=", Call("sum", (A_V,)), ONE), None, RUNNING),
        (Like(A_V, "x%"), Like(V, "x%"), None),
        (InList(A_V, (ONE,)), InList(V, (ONE,)), None),
        (Call("time", (Attribute((), "a"),)), Call("time", (Attribute(()),)), None),
        (Call("time", (Attribute((), "b"),)), None, Call("time", (Attribute((), "b"),))),
        (Arithmetic("+", A_V, B_V), None, Arithmetic("+", V, B_V)),
        (ONE, ONE, None),
    ],
)
def test_conjuncts_are_parted(condition, unary, residual):
    assert split_condition(Atom(("A",), "a", condition)) == (unary, residual)


def test_another_alias_stays():
    assert without_alias(Not(OTHER), "c") == Not(OTHER)
    assert is_unary(without_alias(OTHER, "b"))
