"""Syntax trees as text: what it looks like, and that it reads back the same."""

from __future__ import annotations

from importlib.resources import files

import pytest
from lark import Lark

from nfa.language.description import describe_atom, describe_expression, describe_node, describe_pattern
from nfa.language.parsing import parse_pattern
from nfa.language.words import CONDITION_WORDS, STEP_WORDS
from nfa.syntax import Arithmetic, Atom, Attribute, Comparison, Literal, Negative, Pattern

SAME = [
    "A",
    "A|shop.b x [v = 1]",
    "_ x",
    "`register request` r",
    "`a..b`",
    "`next.step` `where`",
    "SEQ(A a, WITHIN 5 s NEXT B b, STRICT NOT N n [v = a.v], C c)",
    "SEQ(A+ a [v > 1] EACH WITHIN 90 s STRICT UNTIL U u [v = 1] GREEDY, B? b, C* c, D{2} d, E{2,} e, F{2,3} f)",
    "SEQ(A a, SEQ(B b, C c) WITHIN 1 h {2,} EACH NEXT, AND(D d, OR(E e, F f)) WITHIN 250 ms)",
    "SEQ(A a, B b)+ UNTIL U",
    "A a [v = 1 AND (w = 2 OR NOT x = 3) AND NOT (y AND z)]",
    "A a [(v = 1) = (w = 2)]",
    "A a [(v = 1 OR w) IS NOT NULL]",
    "A a [(NOT v) IN (1, -2.5, 'it''s', NULL, TRUE)]",
    "A a [v NOT LIKE 'a%' AND v NOT IN (1) AND v IS NULL]",
    "A a [1 - (2 - 3) - 4 * (5 + 6) / 7 < -(5) + -v - -(-v) * -5]",
    "A a [(1 + 2) * 3 / (4 / 5) > -(1 + 2)]",
    "A a [a.`odd name`.not = `not`.x AND limit = 1e+16]",
    "SEQ(A+ a, B b [b.key = 'k' AND `key` = x.key AND b.`key` > 1 AND max(a.key) = coalesce(prev(b.key), 1)])",
    "SEQ(A `NOT`, B b [`NOT`.key = b.key AND b.key LIKE 'a%'])",
    "A+ a [sum(a.v) < coalesce(prev(v), 0) AND count(a) > 1 AND time(a) > 3]",
]


@pytest.mark.parametrize("text", SAME)
def test_text_in_plain_form_stays_as_it_is(text: str) -> None:
    node = parse_pattern(f"PATTERN p EVENT {text}").event
    assert describe_node(node) == text


def test_a_whole_pattern() -> None:
    text = """PATTERN `my pattern`
EVENT SEQ(A a, B b)
WHERE [k, m.n] AND a.v < b.v OR a.w IS NULL
WITHIN 90 min
SELECT NEXT SKIP TO FIRST b
LIMIT 3
EMIT TIMEOUTS
RETURN a.v, b.v + 1 AS `next one`, (a.v = 1)"""
    pattern = parse_pattern(text)
    assert describe_pattern(pattern) == text
    assert [column.name for column in pattern.returns] == ["a.v", "next one", "a.v = 1"]


@pytest.mark.parametrize(
    ("clause", "written"),
    [
        ("WITHIN 120 s", "WITHIN 2 min"),
        ("WITHIN 2 weeks", "WITHIN 14 d"),
        ("WITHIN 2 w", "WITHIN 14 d"),
        ("WITHIN 0.001 ms", "WITHIN 1 us"),
        ("SELECT ALL MATCHES", ""),
        ("SELECT SKIP PAST LAST", "SELECT SKIP PAST LAST"),
        ("SELECT STRICT ONCE PER KEY", "SELECT STRICT ONCE PER KEY"),
        ("RETURN A.v AS `A.v`", "RETURN A.v"),
    ],
)
def test_clauses(clause: str, written: str) -> None:
    assert describe_pattern(parse_pattern(f"PATTERN p EVENT A {clause}")) == "\n".join(
        ["PATTERN p", "EVENT A", *[written][: bool(written)]]
    )


def test_signs_never_make_a_comment() -> None:
    twice = Negative(Negative(Literal(-1)))
    assert describe_expression(twice) == "-(-(-1))"
    assert describe_expression(Arithmetic("-", Literal(1), Negative(Attribute(("v",))))) == "1 - -v"


def test_a_step() -> None:
    assert describe_atom(Atom(("A", "B"), "A|B")) == "A|B"


def words_of_the_grammar() -> list[str]:
    grammar = Lark(
        files("nfa.language").joinpath("grammar.lark").read_text(encoding="utf-8"), parser="lalr", lexer="contextual"
    )
    found = [terminal.pattern.value.removesuffix(r"\b") for terminal in grammar.terminals]
    words = {
        word
        for value in found
        if value.strip("()|").replace("|", "").isalpha()
        for word in value.strip("()").split("|")
    }
    return sorted({*words, *STEP_WORDS, *CONDITION_WORDS, "seconds", "us", "prev", "count"} - {"_"})


@pytest.mark.parametrize("word", words_of_the_grammar())
def test_every_word_of_the_language_can_be_every_name(word: str) -> None:
    """The lists of words to quote are complete: no word of the grammar is misread at any place of a name."""
    step = Atom((f"{word}.{word}", word), word, Attribute((word, word), word))
    text = describe_pattern(Pattern(name=word, event=step, keys=((word, word),), where=Attribute((word,), word)))
    pattern = parse_pattern(f"{text} SELECT SKIP TO FIRST {word} RETURN {describe_expression(pattern_column(word))}")
    assert (pattern.name, pattern.event, pattern.keys) == (word, step, ((word, word),))
    inner = f"SEQ({describe_atom(step)}, WITHIN 5 s {describe_atom(Atom((word,), 'b'))})"
    assert describe_node(parse_pattern(f"PATTERN p EVENT {inner}").event) == inner


def test_an_alias_may_look_like_any_type() -> None:
    node = parse_pattern("PATTERN p EVENT A `_` [_.v = 1]").event
    assert node == Atom(("A",), "_", Comparison("=", Attribute(("v",), "_"), Literal(1)))
    assert describe_node(node) == "A `_` [_.v = 1]"


def pattern_column(word: str) -> Attribute:
    return Attribute((word,), word)


def test_the_grammar_has_the_words_that_are_tested() -> None:
    assert {"WITHIN", "SELECT", "TIMEOUTS", "GREEDY", "LIKE", "NEXT", "AS"} <= set(words_of_the_grammar())
