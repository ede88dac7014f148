"""Pattern text: what each construct of the language is read as. Refusals are in ``test_refusals.py``."""

from __future__ import annotations

import pytest

from nfa.errors import PatternRefused
from nfa.language.parsing import parse_pattern, parse_patterns
from nfa.syntax import (
    After,
    Arithmetic,
    Atom,
    Attribute,
    Both,
    Call,
    Column,
    Comparison,
    Conjunction,
    Disjunction,
    Either,
    Expression,
    Gap,
    InList,
    IsNull,
    Item,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    Pattern,
    Position,
    Repeat,
    Sequence,
)
from tests.builders.patterns import sequence

A, B, C, N = Atom(("A",), "a"), Atom(("B",), "b"), Atom(("C",), "c"), Atom(("N",), "N")
V = Attribute(("v",))
V_IS_1 = Comparison("=", V, Literal(1))


def event(text: str) -> Node:
    return parse_pattern(f"PATTERN p EVENT {text}").event


def condition(text: str, step: str = "A a") -> Expression:
    node = event(f"{step} [{text}]")
    atom = node.of if isinstance(node, Repeat) else node
    assert isinstance(atom, Atom)
    assert atom.condition is not None
    return atom.condition


def clauses(text: str) -> Pattern:
    return parse_pattern(f"PATTERN p EVENT SEQ(A a, B b) {text}")


def test_the_tutorial_pattern() -> None:
    pattern = parse_pattern(
        """
        PATTERN expensive_cancelled_order  -- comments run to the end of the line
        EVENT SEQ( AND( SEQ(OrderFromSupplier s, GenerateQuote q [totalPrice > 200]),
                        SEQ(UseRemoteStock u, GenerateInvoice i) ), CancelOrder c )
        WHERE [transaction_id]
        WITHIN 7 days
        """
    )
    quote = Atom(("GenerateQuote",), "q", Comparison(">", Attribute(("totalPrice",)), Literal(200)))
    supplier = sequence(Atom(("OrderFromSupplier",), "s"), quote)
    stock = sequence(Atom(("UseRemoteStock",), "u"), Atom(("GenerateInvoice",), "i"))
    assert pattern.name == "expensive_cancelled_order"
    assert pattern.event == sequence(Conjunction((supplier, stock)), Atom(("CancelOrder",), "c"))
    assert pattern.keys == (("transaction_id",),)
    assert pattern.within_us == 7 * 86_400_000_000


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("A", Atom(("A",), "A")),
        ("A a", A),
        ("shop.order", Atom(("shop.order",), "shop.order")),
        ("`register request` r", Atom(("register request",), "r")),
        ("Noted n", Atom(("Noted",), "n")),
        ("A|shop.b", Atom(("A", "shop.b"), "A|shop.b")),
        ("_", Atom(("_",), "_")),
        ("_ x", Atom(("_",), "x")),
        ("`next` `select`", Atom(("next",), "select")),
        ("SEQ", Atom(("SEQ",), "SEQ")),
        ("A a [v = 1]", Atom(("A",), "a", V_IS_1)),
        ("SEQ(A a)", sequence(A)),
        ("seq(A a, B b)", sequence(A, B)),
        ("SEQ -- it is\n (A a)", sequence(A)),
        ("AND(A a, B b)", Conjunction((A, B))),
        ("OR(A a, B a)", Disjunction((A, Atom(("B",), "a")))),
        ("SEQ(A a, AND(B b) WITHIN 2 s)", sequence(A, Conjunction((B,), 2_000_000))),
        ("A? a", Repeat(of=A, min=0, max=1)),
        ("A+ a", Repeat(of=A, min=1, max=None)),
        ("A* a", Repeat(of=A, min=0, max=None)),
        ("A{2} a", Repeat(of=A, min=2, max=2)),
        ("A{2,3} a", Repeat(of=A, min=2, max=3)),
        ("A{2,} a", Repeat(of=A, min=2, max=None)),
        ("A+ a EACH NEXT", Repeat(of=A, min=1, max=None, each=Gap("next"))),
        ("A+ a EACH WITHIN 1 s STRICT", Repeat(of=A, min=1, max=None, each=Gap("strict", 1_000_000))),
        ("A+ a UNTIL N GREEDY", Repeat(of=A, min=1, max=None, until=N, greedy=True)),
        (
            "A+ a UNTIL N n [v = 1]",
            Repeat(of=A, min=1, max=None, until=Atom(("N",), "n", V_IS_1)),
        ),
        ("SEQ(A a, B b){2}", Repeat(of=sequence(A, B), min=2, max=2)),
        (
            "SEQ(A a, AND(B b, C c) WITHIN 1 s + EACH ANY UNTIL N)",
            sequence(A, Repeat(of=Conjunction((B, C), 1_000_000), min=1, max=None, each=Gap("any"), until=N)),
        ),
        ("SEQ(A a, NEXT B b)", Sequence((Item(of=A), Item(of=B, gap=Gap("next"))))),
        ("SEQ(A a, WITHIN 1 s B b)", Sequence((Item(of=A), Item(of=B, gap=Gap(None, 1_000_000))))),
        ("SEQ(A a, WITHIN 1 s ANY B b)", Sequence((Item(of=A), Item(of=B, gap=Gap("any", 1_000_000))))),
        ("SEQ(A a, NOT N, B b)", Sequence((Item(of=A), Item(negated=N), Item(of=B)))),
        ("SEQ(A a, STRICT NOT N, B b)", Sequence((Item(of=A), Item(negated=N, gap=Gap("strict")), Item(of=B)))),
        ("SEQ(A a, WITHIN 1 s NOT N)", Sequence((Item(of=A), Item(negated=N, gap=Gap(None, 1_000_000))))),
    ],
)
def test_events(text: str, node: Node) -> None:
    assert event(text) == node


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("v", V),
        ("a.v", Attribute(("v",), "a")),
        ("x.v", Attribute(("x", "v"))),
        ("limit = 3", Comparison("=", Attribute(("limit",)), Literal(3))),
        ("v.not = 3", Comparison("=", Attribute(("v", "not")), Literal(3))),
        ("`not` = 3", Comparison("=", Attribute(("not",)), Literal(3))),
        ("not `odd name`.y", Not(Attribute(("odd name", "y")))),
        ("v = 'it''s'", Comparison("=", V, Literal("it's"))),
        ("v = -2.5e3", Comparison("=", V, Literal(-2500.0))),
        ("v = -9223372036854775808", Comparison("=", V, Literal(-(2**63)))),
        ("v = 9223372036854775808", Comparison("=", V, Literal(2.0**63))),
        ("v = true or v = FALSE", Either((Comparison("=", V, Literal(True)), Comparison("=", V, Literal(False))))),
        ("-v < -(5)", Comparison("<", Negative(V), Negative(Literal(5)))),
        ("v <= 5 s", Comparison("<=", V, Literal(5_000_000))),
        ("v <= 1.5min", Comparison("<=", V, Literal(90_000_000))),
        ("v >= 2 WEEKS", Comparison(">=", V, Literal(1_209_600_000_000))),
        ("v = 2.5e-1 s", Comparison("=", V, Literal(250_000))),
        ("v IS NULL", IsNull(V)),
        ("v IS NOT NULL", Not(IsNull(V))),
        ("v IN (1, -2, 'x', NULL)", InList(V, (Literal(1), Literal(-2), Literal("x"), Literal(None)))),
        ("v NOT IN (1)", Not(InList(V, (Literal(1),)))),
        ("v LIKE 'a%'", Like(V, "a%")),
        ("v NOT LIKE 'a_'", Not(Like(V, "a_"))),
        ("v AND (v OR v) AND NOT v", Both((V, Either((V, V)), Not(V)))),
        ("v - 1 - 2", Arithmetic("-", Arithmetic("-", V, Literal(1)), Literal(2))),
        ("v - (1 - 2)", Arithmetic("-", V, Arithmetic("-", Literal(1), Literal(2)))),
        ("v + 2 * 3", Arithmetic("+", V, Arithmetic("*", Literal(2), Literal(3)))),
        ("v / 2 != 1", Comparison("!=", Arithmetic("/", V, Literal(2)), Literal(1))),
        ("coalesce(v, 0)", Call("coalesce", (V, Literal(0)))),
        ("COUNT(a) = 1", Comparison("=", Call("count", (Attribute((), "a"),)), Literal(1))),
        ("count(v) = 1", Comparison("=", Call("count", (V,)), Literal(1))),
        ("time(a) + 1", Arithmetic("+", Call("time", (Attribute((), "a"),)), Literal(1))),
        ("key = 'k'", Comparison("=", Call("key", (Attribute((), "a"),)), Literal("k"))),
        ("a.key = 'k'", Comparison("=", Call("key", (Attribute((), "a"),)), Literal("k"))),
        ("`key` = a.`key`", Comparison("=", Attribute(("key",)), Attribute(("key",), "a"))),
        ("v.key = Key", Comparison("=", Attribute(("v", "key")), Attribute(("Key",)))),
        (
            "sum(a.v * 2) < 6",
            Comparison("<", Call("sum", (Arithmetic("*", Attribute(("v",), "a"), Literal(2)),)), Literal(6)),
        ),
        ("prev(v) IS NULL", IsNull(Call("prev", (V,)))),
    ],
)
def test_conditions(text: str, expression: Expression) -> None:
    assert condition(text) == expression


def test_references_find_their_step() -> None:
    node = event("SEQ(A a, NOT N n [v = a.v AND n.v = 1 AND x.v = 2], B b [v = a.v])")
    assert isinstance(node, Sequence)
    negated, last = node.items[1].negated, node.items[2].of
    of_a = Attribute(("v",), "a")
    assert negated is not None
    assert negated.condition == Both(
        (
            Comparison("=", V, of_a),
            Comparison("=", Attribute(("v",), "n"), Literal(1)),
            Comparison("=", Attribute(("x", "v")), Literal(2)),
        )
    )
    assert last == Atom(("B",), "b", Comparison("=", V, of_a))


def test_clauses() -> None:
    pattern = clauses(
        "RETURN a.v AS x, b.v + 1 LIMIT 3 EMIT TIMEOUTS WHERE [k, m.n] AND a.v < b.v WITHIN 2 h SELECT NEXT"
    )
    of_a, of_b = Attribute(("v",), "a"), Attribute(("v",), "b")
    assert pattern == Pattern(
        name="p",
        event=sequence(A, B),
        keys=(("k",), ("m", "n")),
        where=Comparison("<", of_a, of_b),
        within_us=7_200_000_000,
        select="next",
        limit=3,
        timeouts=True,
        returns=(Column(of_a, "x"), Column(Arithmetic("+", of_b, Literal(1)), "b.v + 1")),
    )


@pytest.mark.parametrize(
    ("text", "select", "after"),
    [
        ("", "all", After()),
        ("SELECT ALL MATCHES", "all", After()),
        ("SELECT NEXT", "next", After()),
        ("SELECT STRICT SKIP TO NEXT", "strict", After("skip_to_next")),
        ("SELECT ONCE PER KEY", "all", After("once_per_key")),
        ("SELECT SKIP PAST LAST", "all", After("skip_past_last")),
        ("SELECT NEXT SKIP TO FIRST b", "next", After("skip_to_first", "b")),
        ("SELECT SKIP TO LAST a", "all", After("skip_to_last", "a")),
    ],
)
def test_selection(text: str, select: str, after: After) -> None:
    pattern = clauses(text)
    assert (pattern.select, pattern.after) == (select, after)


def test_where_takes_keys_a_condition_or_both() -> None:
    greater = Comparison(">", Attribute(("v",), "a"), Literal(1))
    assert (clauses("WHERE [k]").keys, clauses("WHERE [k]").where) == ((("k",),), None)
    assert (clauses("WHERE a.v > 1").keys, clauses("WHERE a.v > 1").where) == ((), greater)
    both = clauses("WHERE [k] AND a.v > 1 OR a.v > 1")
    assert both.where == Either((greater, greater))


def test_words_of_the_language_are_names_where_nothing_else_can_stand() -> None:
    pattern = parse_pattern("PATTERN event EVENT next [within = 3 AND select.not = 4] WHERE [where, in]")
    assert pattern.name == "event"
    assert pattern.keys == (("where",), ("in",))
    assert isinstance(pattern.event, Atom)
    assert pattern.event.types == ("next",)


def test_positions_point_at_what_they_belong_to() -> None:
    node = event("SEQ(A a,\n  NEXT B{2,3} b [v > a.v])")
    assert isinstance(node, Sequence)
    item = node.items[1]
    repeat = item.of
    assert isinstance(repeat, Repeat)
    assert isinstance(repeat.of, Atom)
    assert isinstance(repeat.of.condition, Comparison)
    assert isinstance(repeat.of.condition.right, Attribute)
    places = [item.position, repeat.of.position, repeat.position, repeat.of.condition.right.position]
    assert places == [Position(2, 3), Position(2, 8), Position(2, 9), Position(2, 22)]


def test_several_patterns_in_one_text() -> None:
    assert [pattern.name for pattern in parse_patterns("PATTERN p EVENT A PATTERN q EVENT B")] == ["p", "q"]


def test_a_constant_keeps_its_kind() -> None:
    assert len({Literal(1), Literal(1.0), Literal(True)}) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: the text ends; expected PATTERN"),
        ("EVENT A", "line 1, column 1: unexpected 'EVENT'; expected PATTERN"),
        (
            "PATTERN p\nEVENT SEQ(A, B",
            "line 2, column 15: the text ends; expected ')', '*', '+', ',', '.', '?', '[', '{'",
        ),
        ("PATTERN p EVENT SEQ(A,, B)", "column 23: unexpected ','; expected '_', ANY, NEXT or STRICT, NOT, SEQ("),
        ("PATTERN p EVENT A [v >]", "unexpected ']'; expected '(', '-', CASE, FALSE, NULL"),
        ("PATTERN p EVENT A [v = 'x]", 'column 24: unexpected "\'"; expected'),
        ('PATTERN p EVENT A [v = "x"]', "(write a text in single quotes, a name in back quotes)"),
        ("PATTERN p EVENT A [v == 1]", "(equal is one =)"),
        ("PATTERN p EVENT A [v = 1 || w = 2]", "(write OR, or concat(a, b) for texts)"),
        ("PATTERN p EVENT A [v ~ 'x']", "(for regular expressions write matches(text, expression))"),
        ("PATTERN p EVENT A [v regexp 'x']", "(for regular expressions write matches(text, expression))"),
        ("PATTERN p EVENT A [v % 2 = 0]", "(the remainder is mod(x, y))"),
        ("PATTERN p EVENT A -> B", "(events one after the other are SEQ(A a, B b))"),
        ("PATTERN p EVENT A [v <> 1]", "column 22: unexpected '<>'"),
        ("PATTERN p EVENT A [a && b]", "column 22: unexpected '&&'"),
        ("PATTERN p EVENT A [v = 1; w = 1]", "(patterns and clauses need no separator)"),
        ("PATTERN p EVENT A WITHIN 5", "expected BUSINESS or a unit of time (us, ms, s, min, h, d, w)"),
        ("PATTERN p EVENT A WITHIN 5 fortnights", "unexpected 'fortnights'; expected BUSINESS or a unit of time"),
        ("PATTERN p EVENT A SELECT", "the text ends; expected ALL, NEXT, ONCE, SKIP or STRICT"),
        ("PATTERN p EVENT SEQ(A a, B where)", "unexpected 'where'; expected"),
        ("PATTERN p EVENT SEQ(A a, B where)", "(as a name, write it in back quotes: `where`)"),
        ("PATTERN p EVENT COUNT(Refunded) > 20", "(to require 21 events write Refunded{21} r)"),
        ("PATTERN p EVENT Refunded r COUNT(r) > 20", "(to require 21 events write Refunded{21} r)"),
        ("PATTERN p EVENT A a Group BY country", "(to group, correlate: WHERE [country])"),
        ("PATTERN p EVENT 報告 r", "(write names with other characters in back quotes: `報告`)"),
        ("PATTERN p EVENT SEQ(order-created o)", "(write names with other characters in back quotes: `order-created`)"),
        ("PATTERN p EVENT 2fa r", "(write names with other characters in back quotes: `2fa`)"),
        ("PATTERN p EVENT A a [größe = 5]", "(write names with other characters in back quotes: `größe`)"),
        ("PATTERN p EVENT A PATTERN q EVENT B", "expected one pattern, found p, q"),
        ("PATTERN p EVENT A " + "-" * 20_000, "the text has 20018 characters; at most 20000 are read"),
    ],
)
def test_unreadable_text_is_refused_with_what_could_stand_there(text: str, message: str) -> None:
    with pytest.raises(PatternRefused) as caught:
        parse_pattern(text)
    assert message in str(caught.value)
    assert caught.value.reason == ("too-large" if "at most" in message else "syntax")


def test_a_refusal_carries_line_and_column_for_programs() -> None:
    with pytest.raises(PatternRefused) as caught:
        parse_pattern("PATTERN p\nEVENT SEQ(A a,\n  B b [])")
    assert caught.value.details == {"reason": "syntax", "line": 3, "column": 8}


def test_comments_and_quotes_may_hold_brackets() -> None:
    text = "-- " + "(" * 60 + " it's\nPATTERN p EVENT A a [v = '" + "[" * 60 + "']"
    assert parse_pattern(text).name == "p"


def test_what_is_deep_but_allowed_is_read() -> None:
    deep = "SEQ(" * 40 + "A [v = " + "1 + " * 8 + "1]" + ")" * 40
    assert parse_pattern(f"PATTERN p EVENT {deep}").name == "p"


def test_each_pattern_keeps_its_own_text() -> None:
    first, second = parse_patterns("-- two\nPATTERN p EVENT A [NOT v = 1]\n\nPATTERN q EVENT B -- the end")
    assert first.text == "PATTERN p EVENT A [NOT v = 1]"
    assert second.text == "PATTERN q EVENT B"
