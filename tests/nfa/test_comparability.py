"""Comparisons of texts with numbers or booleans are reported with a count and advice."""

import pytest

from nfa import incomparable, parse_pattern
from streams import Event, EventBatch
from streams.tables import TableForm

FORMS = {"t": TableForm(key=("k",), columns={"k": "text", "limit": "text", "most": "number", "open": "boolean"})}


def told(text, *data, kind="A"):
    events = [Event(id=f"e{n}", type=kind, time_us=n, key="k", data=item) for n, item in enumerate(data)]
    notices = list(incomparable(parse_pattern(f"PATTERN p EVENT {text}"), EventBatch.from_events(events), forms=FORMS))
    assert all(notice.code == "incomparable" for notice in notices)
    return [notice.message for notice in notices]


@pytest.mark.parametrize(
    ("condition", "value", "kind", "constant", "advice"),
    [
        ("v > 100", "250", "a text", "100 is a number", "write '100' to compare texts, or send a number"),
        ("v = TRUE", "true", "a text", "TRUE is a boolean", "write 'true' to compare texts, or send a boolean"),
        ("v = '7'", 7, "a number", "'7' is a text", "write 7 without quotes to compare numbers, or send a text"),
        ("v = 1", True, "a boolean", "1 is a number", "compare it with a boolean, or send a number"),
        ("v = FALSE", 0.5, "a number", "FALSE is a boolean", "compare it with a number, or send a boolean"),
        ("2 <= v", "3", "a text", "2 is a number", "write '2' to compare texts, or send a number"),
        ("v IN (1, 2)", "1", "a text", "none of 1, 2 is", "write '1' to compare texts, or send a number"),
    ],
)
def test_a_comparison_that_is_always_null_is_reported_with_a_count(condition, value, kind, constant, advice):
    (message,) = told(f"A a [{condition}]", {"v": value}, {"v": value}, {})
    assert message.startswith(f"v is {kind} in 2 of 2 events of the type A, and {constant}")
    assert "comparing them is null, so the condition is not met there" in message
    assert advice in message


def test_some_events_of_another_kind_are_counted_beside_the_others():
    (message,) = told("A a [v > 1]", {"v": 1}, {"v": "n/a"}, {"v": 2.5}, {"v": None}, {"v": "n/a"})
    assert message.startswith("v is a text in 2 of 4 events")


def test_steps_negations_and_where_are_read_and_each_comparison_is_reported_once():
    text = "SEQ(A a, NOT A [v = 1] AS n, A b [v = 1 OR a.v = 1]) WHERE a.v < 3 AND b.w > 5"
    messages = told(text.replace("A [v = 1] AS n", "A n [v = 1]"), {"v": "x", "w": 6})
    assert [message.split(" is ")[0] for message in messages] == ["v", "a.v", "a.v"]


def test_two_attributes_of_different_kinds_are_never_comparable():
    (message,) = told("SEQ(A a, A b [b.w = a.v])", {"v": "1", "w": 1}, {"v": "2"})
    assert message.startswith("b.w is a number in all 1 events of the type A that have it, and a.v a text in all 2")
    assert told("SEQ(A a, A b [b.w = a.v])", {"v": "1", "w": 1}, {"v": 2}) == []


@pytest.mark.parametrize(
    "text",
    ["A a [v > 1]", "A a [v IN (1, 'x')]", "A a [v IS NULL OR w.x = 3]", "B b [v = 'x']", "SEQ(A a, A b [v > a.v])"],
)
def test_what_can_be_compared_is_not_reported(text):
    assert told(text, {"v": 2, "w": {"x": 1}}, {"v": 0.5}, {"v": []}, {}) == []


def test_any_event_and_nested_attributes():
    (message,) = told("_ a [w.x = 3]", {"w": {"x": "3"}}, kind="C")
    assert message.startswith("w.x is a text in 1 of 1 events here")


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (
            "v > lookup(t, k).limit",
            "lookup(t, k).limit is a text, as the column limit of the table t is, and v a number",
        ),
        (
            "lookup(t, k).limit > 3",
            "lookup(t, k).limit is a text, as the column limit of the table t is, and 3 a number",
        ),
        (
            "lookup(t, k).open IN ('a', 1)",
            "lookup(t, k).open is a boolean, as the column open of the table t is, and 'a'",
        ),
        ("v > lookup(t, k).most", None),
        ("k = lookup(t, k).limit", None),
        ("w = lookup(t, k).limit", None),  # a text in one event
        ("gone = lookup(t, k).limit", None),
        ("lookup(t, k).most IN ('a', 1)", None),
        ("v > lookup(unknown, k).limit", None),
    ],
)
def test_a_lookup_is_compared_by_the_type_of_its_column(condition, found):
    messages = told(f"A a [{condition}]", {"v": 1, "k": "x", "w": 1}, {"v": 2.5, "k": "y", "w": "z"})
    assert len(messages) == (found is not None)
    assert found is None or messages[0].startswith(found)
