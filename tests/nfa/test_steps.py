"""A step alone: its normal form, and what is refused because one event cannot answer it."""

import pytest

from nfa import Atom, Attribute, Comparison, Literal, PatternRefused, describe_atom, parse_step


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Quote", "Quote"),
        ("Quote[price>1000]", "Quote [price > 1000]"),
        ("Quote q [q.price > 1000 and not q.name like 'a,]%']", "Quote [price > 1000 AND name NOT LIKE 'a,]%']"),
        ("Quote [Quote.price > 1000]", "Quote [price > 1000]"),
        ("`send quote` s [time(s) > 5 and type(s) in ('a', 'b')]", "`send quote` [time(`send quote`) > 5"),
        ("a.b [c.d is null]", "a.b [c.d IS NULL]"),
        ("A|B [x = 1]", "A|B [x = 1]"),
        ("_ [x = 1 -- a comment ]\n]", "_ [x = 1]"),
        ("A [coalesce(x, -1) * 2 <= y or TRUE]", "A [coalesce(x, -1) * 2 <= y OR TRUE]"),
        ("Quote q [Quote.price > 1]", "Quote [Quote.Quote.price > 1]"),
    ],
)
def test_normal_form(text: str, normal: str) -> None:
    step = parse_step(text)
    assert describe_atom(step).startswith(normal)
    assert parse_step(describe_atom(step)) == step
    assert step.alias == step.type


def test_the_condition_is_on_the_event_at_hand() -> None:
    condition = Comparison(">", Attribute(("price",)), Literal(1000))
    assert parse_step("Quote q [q.price > 1000]") == Atom(("Quote",), "Quote", condition)


@pytest.mark.parametrize(
    ("text", "reason", "column", "message"),
    [
        ("", "syntax", 1, "the text ends; expected '_' or a name"),
        ("Quote+", "syntax", 6, "a step alone has no quantifier"),
        ("Quote [x = 1] EACH NEXT", "syntax", 15, "a step alone has no quantifier, EACH"),
        ("SEQ(A, B)", "syntax", 4, "unexpected '('"),
        ("Quote [price >> 1]", "syntax", 15, "unexpected '>'"),
        ("Quote [x = 1] Quote", "syntax", 15, "unexpected 'Quote'"),
        ("Quote [count(x) > 1]", "aggregate", 8, "count reads several events"),
        ("Quote [prev(x) > 1]", "prev", 8, "prev reads several events"),
        ("Quote [size(x) > 1]", "unknown-function", 8, "size is not a function"),
        ("Quote [Quote > 1]", "bare-alias", 8, "the alias Quote is an event, not a value"),
        (f"A [{'(' * 60}x{')' * 60}]", "too-large", 53, "nest deeper"),
    ],
)
def test_refusals(text: str, reason: str, column: int, message: str) -> None:
    with pytest.raises(PatternRefused, match=rf"^line 1, column {column}: ") as caught:
        parse_step(text)
    assert caught.value.reason == reason
    assert message in caught.value.message
