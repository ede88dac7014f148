"""Keys by event type: what is declared, which events they are read from, how patterns name them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import (
    DeclarationError,
    Event,
    EventBatch,
    EventRejected,
    StreamDeclaration,
    parse_cloudevent,
    parse_plain,
    place_for,
)

BY_TYPE = {"Payment": "data.ref", "Shipment": "data.order.id", "*": "data.id"}
PAYMENTS = StreamDeclaration(name="shop", key=BY_TYPE, keys={"customer": {"Order": "data.who.id", "*": "customer_id"}})

values = st.sampled_from(["a", "b", "", 7, 1.5, None, True, ["a"], {"id": "x"}])
attributes = st.dictionaries(st.sampled_from(["id", "ref", "order", "who"]), values | st.just({"ref": "y"}), max_size=4)
paths = st.sampled_from(["id", "ref", "order", "order.id", "who.ref", "data.ref"])
by_type = st.dictionaries(st.sampled_from(["A", "B", "C", "*"]), paths, min_size=1)


def event(event_type: str, **data: Any) -> dict[str, Any]:
    return {"id": "e1", "type": event_type, "time": 5, "data": data}


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (event("Payment", ref="r", id="no"), "r"),
        (event("Shipment", order={"id": 7}), "7"),
        (event("Refund", id="i"), "i"),
    ],
)
def test_the_key_is_read_at_the_path_of_the_type(value, key):
    assert parse_plain(value, PAYMENTS).key == key
    envelope = {"specversion": "1.0", "source": "/shop", "subject": "s", **value, "time": "2026-01-01T00:00:00Z"}
    assert parse_cloudevent(envelope, PAYMENTS).key == key


def test_a_cloudevent_may_have_its_key_as_subject_for_some_types():
    stream = StreamDeclaration(name="shop", key={"Payment": "data.ref", "*": "subject"})
    envelope = {"specversion": "1.0", "source": "/s", "id": "e", "time": "2026-01-01T00:00:00Z", "subject": "s"}
    assert parse_cloudevent({**envelope, "type": "Order"}, stream).key == "s"
    assert parse_cloudevent({**envelope, "type": "Payment", "data": {"ref": "r"}}, stream).key == "r"
    assert parse_plain({"id": "e", "type": "Order", "time": 1, "key": "k"}, stream).key == "k"


@pytest.mark.parametrize("parse", [parse_plain, parse_cloudevent])
def test_an_event_of_a_type_without_a_path_is_rejected_with_the_known_types(parse):
    stream = StreamDeclaration(name="shop", key={"Payment": "data.ref", "Shipment": "data.order"})
    envelope = {"specversion": "1.0", "source": "/s", **event("Refund", ref="r"), "time": "2026-01-01T00:00:00Z"}
    with pytest.raises(
        EventRejected, match=r"type 'Refund' has no correlation key here; .* Payment, Shipment"
    ) as caught:
        parse(envelope, stream)
    assert caught.value.details == {"field": "type"}


def test_a_null_at_the_path_of_the_type_is_rejected_by_that_path():
    with pytest.raises(EventRejected, match=r"'data\.ref' must be a non-empty text or an integer, got None"):
        parse_plain(event("Payment", ref=None, id="i"), PAYMENTS)


@given(st.lists(st.tuples(st.sampled_from("ABCD"), attributes), max_size=6), by_type)
def test_rows_are_keyed_by_the_path_of_their_type(rows, key):
    """The naive meaning: each event has the text or integer at the path of its type, or is left out."""
    stream = StreamDeclaration(name="shop", keys={"k": key})
    events = [Event(id=f"e{n}", type=name, time_us=n, key="x", data=data) for n, (name, data) in enumerate(rows)]
    expected = []
    for one in events:
        found: Any = one.data
        path = place_for(key, one.type)
        for name in (path or "nowhere").removeprefix("data.").split("."):
            found = found.get(name) if isinstance(found, dict) else None
        if found and isinstance(found, str | int) and not isinstance(found, bool):
            expected.append((one.id, str(found)))
    keyed = EventBatch.from_events(events).keyed_by(stream.attribute_of("k"))
    assert [(one.id, one.key) for one in keyed.to_events()] == expected


def test_a_declaration_survives_storage_and_a_single_path_is_stored_as_before():
    assert StreamDeclaration.from_json(PAYMENTS.to_json()) == PAYMENTS
    assert PAYMENTS.to_json()["key"] == BY_TYPE
    single = StreamDeclaration(name="shop", key="data.id", keys={"customer": "data.customer"}).to_json()
    assert single["key"] == "data.id"
    assert single["keys"] == {"customer": "data.customer"}


def test_patterns_may_name_a_key_by_any_of_its_paths():
    assert set(PAYMENTS.key_paths) >= {("ref",), ("data", "ref"), ("order", "id"), ("id",)}
    assert set(PAYMENTS.route_paths("customer")) >= {("customer",), ("who", "id"), ("customer_id",)}


def test_a_path_that_two_keys_share_names_the_one_that_has_no_other():
    stream = StreamDeclaration(name="shop", key="data.id", keys={"parent": {"Child": "data.parent_id", "*": "data.id"}})
    assert stream.key_paths == (("id",), ("data", "id"))
    assert stream.route_paths("parent") == (("parent",), ("parent_id",), ("data", "parent_id"))
    both = StreamDeclaration(name="shop", key={"A": "data.id", "*": "data.ref"}, keys={"k": {"A": "data.id", "*": "x"}})
    assert both.key_paths == (("ref",), ("data", "ref"))
    assert both.route_paths("k") == (("k",), ("x",))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"key": {}}, "the correlation key needs a path for each event type"),
        ({"key": {"": "data.id"}}, "the correlation key needs a path for each event type"),
        ({"key": {"A": "data..id"}}, "the path 'data..id' of the correlation key has an empty part"),
        ({"key": {"A": 3}}, "'key' of a stream declaration is a path, or an object of paths by event type, got"),
        ({"key": None}, "'key' of a stream declaration is a path, or an object of paths by event type, got None"),
        ({"keys": {"k": 3}}, "the further key 'k' in 'keys' is a path, or an object of paths by event type, got 3"),
        ({"keys": {"k": {}}}, "the further key 'k' needs a path for each event type"),
        ({"key": {"A": "x", "C": "y"}, "event_types": ["A"]}, "has paths for C, which are not among the event types"),
        ({"keys": {"k": {"C": "y"}}, "event_types": ["A"]}, "'k' has paths for C, which are not among the event types"),
        ({"key": {"A": "x"}, "event_types": ["A", "B"]}, "the correlation key has no path for B; add one"),
        ({"key": {"A": "x"}, "end_events": ["End"]}, "the correlation key has no path for End; add one"),
        ({"key": {"A": "data.k"}, "keys": {"k": "data.x"}}, "k means both the further key 'k' and the correlation key"),
        ({"keys": {"k": {"A": "key"}}}, "key means both the further key 'k' and the correlation key subject"),
    ],
)
def test_a_key_that_says_nothing_or_contradicts_itself_is_refused(members, message):
    with pytest.raises(DeclarationError, match=message):
        StreamDeclaration.from_json({"name": "shop", **members})
