"""CloudEvents 1.0, JSON structured mode."""

from typing import Any

import pytest
from hypothesis import given

from streams.declaration import StreamDeclaration
from streams.errors import EventRejected
from streams.event import Event
from streams.forms.cloudevents import parse_cloudevent, render_cloudevent
from tests.builders.streams import event_lists

ORDERS = StreamDeclaration(name="orders")


def envelope(**changes: Any) -> dict[str, Any]:
    """A CloudEvent with some members changed; None removes one."""
    full = {
        "specversion": "1.0",
        "id": "e1",
        "source": "/shop",
        "type": "ReceiveOrder",
        "time": "1970-01-01T00:00:01Z",
        "subject": "order-1",
        "tenant": "acme",
        "data": {"price": 250, "customer": {"id": 17}},
    }
    return {name: value for name, value in {**full, **changes}.items() if value is not None}


def test_a_cloudevent_becomes_an_event() -> None:
    assert parse_cloudevent(envelope(), ORDERS) == Event(
        id="e1",
        type="ReceiveOrder",
        time_us=1_000_000,
        key="order-1",
        data={"price": 250, "customer": {"id": 17}},
    )


@pytest.mark.parametrize(
    ("path", "key"), [("subject", "order-1"), ("data.customer.id", "17"), ("data.price", "250"), ("tenant", "acme")]
)
def test_the_key_stands_where_the_declaration_says(path: str, key: str) -> None:
    assert parse_cloudevent(envelope(), StreamDeclaration(name="orders", key=path)).key == key


@pytest.mark.parametrize("data", [None, {}])
def test_data_may_be_absent(data: dict[str, Any] | None) -> None:
    assert parse_cloudevent(envelope(data=data), ORDERS).data == {}


def test_null_data_are_absent_data() -> None:
    assert parse_cloudevent({**envelope(), "data": None}, ORDERS).data == {}


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8", "application/x+json"])
def test_json_content_types_are_taken(content_type: str) -> None:
    assert parse_cloudevent(envelope(datacontenttype=content_type), ORDERS).id == "e1"


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"specversion": None}, "specversion", "is missing; it must be '1.0'"),
        ({"specversion": "0.3"}, "specversion", "is '0.3'; it must be '1.0'"),
        ({"id": None}, "id", "'id' is missing"),
        ({"id": ""}, "id", "must be a non-empty text"),
        ({"id": 7}, "id", "must be a non-empty text, got 7"),
        ({"id": "\ud800"}, "id", "surrogate"),
        ({"source": None}, "source", "'source' is missing"),
        ({"type": None}, "type", "'type' is missing"),
        ({"type": ["A"]}, "type", "must be a non-empty text"),
        ({"time": None}, "time", "'time' is missing"),
        ({"time": 1_000_000}, "time", "RFC 3339 text"),
        ({"time": "1970-01-01T00:00:01"}, "time", "no time zone"),
        ({"subject": None}, "subject", "'subject' is missing"),
        ({"subject": 1.5}, "subject", "non-empty text or an integer, got 1.5"),
        ({"subject": True}, "subject", "non-empty text or an integer, got True"),
        ({"subject": {"a": 1}}, "subject", "non-empty text or an integer"),
        ({"data": [1]}, "data", "must be a JSON object"),
        ({"data": "x"}, "data", "must be a JSON object"),
        ({"data": {"n": 2**70}}, "data", "cannot be written as JSON"),
        ({"data_base64": "AAEC"}, "data_base64", "send the attributes as a JSON object"),
        ({"datacontenttype": "text/xml"}, "datacontenttype", "send application/json"),
        ({"datacontenttype": 5}, "datacontenttype", "send application/json"),
    ],
)
def test_what_is_wrong_is_refused_with_its_field(changes: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(EventRejected, match=reason) as caught:
        parse_cloudevent(envelope(**changes), ORDERS)
    assert caught.value.details["field"] == field


@pytest.mark.parametrize("path", ["data.customer.name", "data.price.cents", "data", "region"])
def test_a_key_that_is_not_there_is_refused(path: str) -> None:
    with pytest.raises(EventRejected, match=path.replace(".", r"\.")):
        parse_cloudevent(envelope(), StreamDeclaration(name="orders", key=path))


@pytest.mark.parametrize("value", [None, "text", 5, [envelope()]])
def test_only_objects_are_events(value: object) -> None:
    with pytest.raises(EventRejected, match="an event is a JSON object"):
        parse_cloudevent(value, ORDERS)


def test_deeply_nested_nonsense_is_refused_like_any_other() -> None:
    nested: list[Any] = []
    for _ in range(5_000):
        nested = [nested]
    with pytest.raises(EventRejected, match="non-empty text"):
        parse_cloudevent(envelope(id=nested), ORDERS)


def test_a_type_that_is_not_declared_is_refused_with_those_that_are() -> None:
    declared = StreamDeclaration(name="orders", event_types=("ShipOrder", "CancelOrder"))
    with pytest.raises(EventRejected, match=r"'ReceiveOrder' is not declared .* ShipOrder, CancelOrder"):
        parse_cloudevent(envelope(), declared)
    assert parse_cloudevent(envelope(type="ShipOrder"), declared).type == "ShipOrder"


@given(event_lists())
def test_rendered_events_are_read_back(events: list[Event]) -> None:
    assert [parse_cloudevent(render_cloudevent(event, "/test"), ORDERS) for event in events] == events
