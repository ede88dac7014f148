"""Pattern text: what is read, and that every refusal names its place and what would be right."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfa import (
    Atom,
    Attribute,
    Comparison,
    Conjunction,
    Disjunction,
    Literal,
    Not,
    PatternRefused,
    Sequence,
    describe_node,
    parse_pattern,
    parse_patterns,
)
from nfa.testing import nodes


def refused(text: str) -> tuple[str, str]:
    with pytest.raises(PatternRefused) as caught:
        parse_pattern(text)
    return caught.value.reason, str(caught.value)


def test_the_tutorial_pattern() -> None:
    pattern = parse_pattern(
        """
        PATTERN expensive_cancelled_order  -- comments run to the end of the line
        EVENT SEQ( AND( SEQ(OrderFromSupplier s, GenerateQuote q [totalPrice > 200]),
                        SEQ(UseRemoteStock u, GenerateInvoice i) ), CancelOrder c )
        WHERE [transaction_id]
        """
    )
    quote = Atom("GenerateQuote", "q", Comparison(">", Attribute(("totalPrice",)), Literal(200)))
    supplier = Sequence((Atom("OrderFromSupplier", "s"), quote))
    stock = Sequence((Atom("UseRemoteStock", "u"), Atom("GenerateInvoice", "i")))
    assert pattern.name == "expensive_cancelled_order"
    assert pattern.event == Sequence((Conjunction((supplier, stock)), Atom("CancelOrder", "c")))
    assert pattern.keys == (("transaction_id",),)


@given(nodes())
def test_described_patterns_read_back_the_same(node: Sequence) -> None:
    assert parse_pattern(f"PATTERN p EVENT {describe_node(node)}").event == node


@pytest.mark.parametrize(
    ("step", "atom"),
    [
        ("A", Atom("A", "A")),
        ("shop.order", Atom("shop.order", "shop.order")),
        ("`register request` r", Atom("register request", "r")),
        ("Noted n", Atom("Noted", "n")),
        ("A a [limit = 3]", Atom("A", "a", Comparison("=", Attribute(("limit",)), Literal(3)))),
        ("A a [x = -2.5e3]", Atom("A", "a", Comparison("=", Attribute(("x",)), Literal(-2500.0)))),
        ("A a [x = -9223372036854775808]", Atom("A", "a", Comparison("=", Attribute(("x",)), Literal(-(2**63))))),
        ("A a [x = 9223372036854775808]", Atom("A", "a", Comparison("=", Attribute(("x",)), Literal(2.0**63)))),
        ("A a [x = 'it''s']", Atom("A", "a", Comparison("=", Attribute(("x",)), Literal("it's")))),
        ("A a [not `odd name`.y]", Atom("A", "a", Not(Attribute(("odd name", "y"))))),
    ],
)
def test_steps(step: str, atom: Atom) -> None:
    assert parse_pattern(f"pattern p event {step}").event == atom


def test_a_composite_of_one_part_is_that_part() -> None:
    assert parse_pattern("PATTERN p EVENT SEQ(AND(A a))").event == Atom("A", "a")


def test_one_alias_may_stand_in_different_alternatives() -> None:
    assert parse_pattern("PATTERN p EVENT OR(A a, B a)").event == Disjunction((Atom("A", "a"), Atom("B", "a")))


def test_several_patterns_in_one_text() -> None:
    assert [pattern.name for pattern in parse_patterns("PATTERN p EVENT A PATTERN q EVENT B")] == ["p", "q"]


def test_a_constant_keeps_its_kind() -> None:
    assert len({Literal(1), Literal(1.0), Literal(True)}) == 3


@pytest.mark.parametrize(
    ("text", "reason", "message"),
    [
        ("", "syntax", "line 1, column 1: the text ends; expected PATTERN"),
        ("EVENT A", "syntax", "line 1, column 1: unexpected 'EVENT'; expected PATTERN"),
        (
            "PATTERN p\nEVENT SEQ(A, B",
            "syntax",
            "line 2, column 15: the text ends; expected ')', ',', '.', '[' or a name",
        ),
        ("PATTERN p EVENT SEQ(A,, B)", "syntax", "column 23: unexpected ','; expected SEQ(, AND( or OR( or a name"),
        ("PATTERN p EVENT A [v >]", "syntax", "unexpected ']'; expected '(', '-', FALSE, NULL, TRUE, a name, a number"),
        ("PATTERN p EVENT A [v = 'x]", "syntax", 'column 24: unexpected "\'"; expected'),
        (
            "PATTERN p EVENT A WITHIN 5 s",
            "syntax",
            "unexpected 'WITHIN' (time windows are not part of the language yet)",
        ),
        (
            "PATTERN p EVENT SEQ(A, NOT B)",
            "syntax",
            "unexpected 'NOT' (negated steps are not part of the language yet)",
        ),
        ("PATTERN p EVENT A? a", "syntax", "unexpected '?' (optional steps are not part of the language yet)"),
        ("PATTERN p EVENT A+ a", "syntax", "unexpected '+' (repetition and arithmetic are not part"),
        ("PATTERN p EVENT A PATTERN q EVENT B", "syntax", "one pattern is expected here, found p, q"),
        ("PATTERN p EVENT A [v = 1e999]", "syntax", "column 24: the number 1e999 is larger than a float64 can hold"),
        ("PATTERN p EVENT A [" + "NOT " * 51 + "v]", "too-large", "NOT is repeated deeper than 50"),
        ("-- don't\nPATTERN p EVENT A [" + "(" * 1_500, "too-large", "brackets nest deeper than 50"),
        ("PATTERN p EVENT A [v > 1" + "0" * 400 + "]", "syntax", "is larger than a float64 can hold"),
        ("PATTERN p EVENT A [v > 1" + "0" * 5_000 + "]", "syntax", "is larger than a float64 can hold"),
        ("PATTERN p EVENT SEQ(A, A)", "duplicate-alias", "column 24: the alias A is taken by an earlier step; give"),
        ("PATTERN p EVENT SEQ(A a, B b [v > a.v])", "not-yet-bound", "column 35: a.v refers to the step a; the"),
        ("PATTERN p EVENT " + "SEQ(" * 51 + "A" + ")" * 51, "too-large", "brackets nest deeper than 50"),
        ("PATTERN p EVENT A " + "-" * 20_000, "too-large", "the text has 20018 characters; at most 20000 are read"),
    ],
)
def test_refusals_name_place_and_advice(text: str, reason: str, message: str) -> None:
    found, said = refused(text)
    assert found == reason
    assert message in said


def test_a_refusal_carries_line_and_column_for_programs() -> None:
    with pytest.raises(PatternRefused) as caught:
        parse_pattern("PATTERN p\nEVENT SEQ(A a,\n  B b [])")
    assert caught.value.details == {"reason": "syntax", "line": 3, "column": 8}


@given(st.text(alphabet="PATERNVOSQD WHI()[],.`'ab1=<>-\n", max_size=80))
def test_no_text_crashes_the_parser(text: str) -> None:
    names = {"p"}
    with suppress(PatternRefused):
        names = {pattern.name for pattern in parse_patterns("PATTERN p EVENT " + text)}
    assert "p" in names


def test_comments_and_quotes_may_hold_brackets() -> None:
    text = "-- " + "(" * 60 + " it's\nPATTERN p EVENT A a [v = '" + "[" * 60 + "']"
    assert parse_pattern(text).name == "p"


def test_each_pattern_keeps_its_own_text() -> None:
    first, second = parse_patterns("-- two\nPATTERN p EVENT A [NOT v = 1]\n\nPATTERN q EVENT B -- the end")
    assert first.text == "PATTERN p EVENT A [NOT v = 1]"
    assert second.text == "PATTERN q EVENT B"
