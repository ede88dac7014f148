"""Names and comparisons that are null, or not what was meant: refused or warned of with line and column."""

import pytest

from nfa import PatternRefused, TraceEnds, parse_pattern


def warned(text):
    return [
        (one.code, one.placed)
        for one in TraceEnds(has_trace_end=True).warnings_of(parse_pattern(f"PATTERN p EVENT {text}"))
    ]


@pytest.mark.parametrize(
    ("text", "code", "place", "message"),
    [
        (
            "A a [hour(time) = 3]",
            "own-member",
            27,
            "time is an attribute of the data; the time of the event is time(a)",
        ),
        ("SEQ(A a, B b) RETURN date(b.time) AS d", "own-member", 43, "b.time is an attribute of the data"),
        ("A a [type = Order]", "bare-text", 29, "in single quotes: 'Order'; type is an attribute of the data"),
        ("A a [customer != John]", "bare-text", 34, "John is an attribute, and a text is in single quotes: 'John'"),
        (
            "A a [key = 5]",
            "incomparable",
            22,
            "and 5 a number: comparing them is always null; write '5'",
        ),
        ("A a [5 != key]", "incomparable", 27, "write '5'"),
        ("A a [NOT key IN ('a', 5)]", "incomparable", 26, "a.key is a text, and 5 a number"),
        ("A a [key BETWEEN 1 AND 'z']", "incomparable", 22, "a.key is a text, and 1 a number"),
        ("A a [type(a) = 5]", "incomparable", 22, "type(a) is a text, and 5 a number"),
        ("A a [id(a) = TRUE]", "incomparable", 22, "id(a) is a text, and TRUE a condition"),
        ("SEQ(A{2} a, B b) WHERE count(a) > '1'", "incomparable", 40, "; write 1 without quotes"),
        ("SEQ(A{2} a, B b [sum(a.v) = 'x'])", "incomparable", 34, "; compare values of one kind"),
        ("A a [v * 2 > '10']", "incomparable", 22, "v * 2 is a number, and '10' a text"),
        ("Order o [q.amount > 3]", "no-alias", 26, "q is not an alias that is known here, so q.amount is an"),
        ("SEQ(Order o, Cancel c [Order.v > 3])", "no-alias", 40, "aliases of steps are c, o"),
        ("SEQ(Order order, NOT Cancel [odrer.v > 3])", "no-alias", 46, "odrer is not an alias"),
        ("A a [any(cart.items, cart.items.price > 3)]", "element-path", 38, "have no cart.items.price; write price"),
    ],
)
def test_a_likely_mistake_is_a_warning(text, code, place, message):
    ((found, placed),) = warned(text)
    assert found == code
    assert placed.startswith(f"line 1, column {place}: ")
    assert message in placed


@pytest.mark.parametrize(
    "text",
    [
        "A a [hour(time(a)) = 3 AND hour(created) = 4]",
        "A a [type(a) = 'Order' AND customer = 'John' AND name = `first name`]",
        "A a [TotalPrice = NetPrice AND a.b = cart.D]",
        "SEQ(A a, B b [customer = a.Customer])",
        "A a [key = '5' AND `key` = 5 AND id(a) IN ('a', 'b') AND type(a) != NULL AND coalesce(key, 5) = 5]",
        "SEQ(A{2} a, B b [count(a) > 1 AND min(a.v) = 'x' AND sum(a.v) > 1.5])",
        "SEQ(A a, B b [event.v > 3 AND ip.country = 'x' AND customer.b = `a b`.c AND v = 1])",
        "A a [any(items, q.price > 3)]",
        "A a [any(items, price > 3 AND item.price > 3) AND sum(items, price) > 9]",
    ],
)
def test_what_is_meant_so_is_no_warning(text):
    assert warned(text) == []


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("EVENT A a WITHIN 2 business days OF 'de'", "name of a stream (a name has no such quotes: de)"),
        ("EVENT A a INTO 'late-orders'", "(a name has no such quotes: `late-orders`)"),
        ('FOR EACH ROW OF "limits" t EVENT A a', "(a name has no such quotes: limits)"),
        ("EVENT A a [country IN TABLE 'embargo']", "(a name has no such quotes: embargo)"),
    ],
)
def test_a_name_in_quotes_of_texts_is_refused_with_advice(text, advice):
    with pytest.raises(PatternRefused) as caught:
        parse_pattern(f"PATTERN p {text}")
    assert advice in str(caught.value)
