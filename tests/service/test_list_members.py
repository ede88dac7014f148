"""Attributes of the elements of lists, written as members of the list: a notice where there are events."""

import pytest

from nfa import parse_pattern
from service.registering import strangers as module
from service.registering.strangers import strangers
from streams import Event, EventBatch

EVENTS = EventBatch.from_events(
    [
        Event(
            id=str(number),
            type="A",
            time_us=number,
            key="k",
            data={
                "cart": {"items": [{"price": number}]},
                "o": {"v": 1},
                "s": [] if number else {"v": 2},
            },
        )
        for number in range(3)
    ]
)


def noticed(condition):
    pattern = parse_pattern(f"PATTERN p EVENT A a [{condition}]")
    return [(one.code, one.placed) for _, one in strangers([pattern], EVENTS)]


def test_a_member_of_a_list_is_noticed_with_the_ways_to_write_it():
    ((code, text),) = noticed("cart.items.price > 1")
    assert code == "list-member"
    assert text == (
        "line 1, column 22: cart.items is a list, so cart.items.price is null everywhere; write cart.items[0].price "
        "for the first element, any(cart.items, price > 0) or sum(cart.items, price) for all"
    )


@pytest.mark.parametrize(
    "condition", ["cart.items[0].price > 1", "any(cart.items, price > 1)", "o.v = 1", "s.v = 2", "cart.items IS NULL"]
)
def test_what_some_event_has_is_not(condition):
    assert noticed(condition) == []


def test_an_attribute_that_only_late_events_have_is_found(monkeypatch):
    monkeypatch.setattr(module, "_FIRST", 2)
    events = [Event(id=str(n), type="A", time_us=n, key="k", data={"v": 1} if n < 3 else {"w": 1}) for n in range(4)]
    patterns = [parse_pattern(f"PATTERN p EVENT A a [{name} = 1]") for name in ("v", "w", "w", "x", "x")]
    found = [one.message for _, one in strangers(patterns, EventBatch.from_events(events))]
    assert found == ["no event of the type A has x, so it is null everywhere"] * 2
