"""Plain JSON objects through a declared mapping."""

from typing import Any

import pytest
from hypothesis import given

from streams.declaration import FieldMapping, StreamDeclaration
from streams.errors import EventRejected
from streams.event import Event
from streams.forms.plain import parse_plain, render_plain
from tests.builders.streams import event_lists

ORDERS = StreamDeclaration(name="orders")
SHOP = StreamDeclaration(
    name="shop",
    key="order.number",
    mapping=FieldMapping(id="meta.uuid", type="what", time="meta.at", data=None),
)


def line(**changes: Any) -> dict[str, Any]:
    """A plain event under the default mapping with some members changed; None removes one."""
    full = {"id": "e1", "type": "A", "time": 5, "key": "k1", "data": {"price": 1}}
    return {name: value for name, value in {**full, **changes}.items() if value is not None}


def test_the_default_mapping_reads_id_type_time_key_and_data() -> None:
    assert parse_plain(line(), ORDERS) == Event(id="e1", type="A", time_us=5, key="k1", data={"price": 1})


def test_a_declared_mapping_reads_other_shapes() -> None:
    value = {"meta": {"uuid": 12, "at": "1970-01-01T00:00:00.000007Z"}, "what": "Paid", "order": {"number": 99}}
    assert parse_plain(value, SHOP) == Event(id="12", type="Paid", time_us=7, key="99", data=value)


def test_subject_goes_before_key_under_the_default_declaration() -> None:
    assert parse_plain(line(subject="s1"), ORDERS).key == "s1"


def test_a_declared_key_has_no_substitute() -> None:
    with pytest.raises(EventRejected, match="'customer' is missing"):
        parse_plain(line(), StreamDeclaration(name="orders", key="customer"))


def test_missing_data_are_no_attributes() -> None:
    assert parse_plain(line(data=None), ORDERS).data == {}


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"id": None}, "id", "'id' is missing"),
        ({"id": 1.0}, "id", "got 1.0"),
        ({"type": None}, "type", "'type' is missing"),
        ({"type": 3}, "type", "must be a non-empty text, got 3"),
        ({"time": None}, "time", "'time' is missing"),
        ({"time": "noon"}, "time", "not RFC 3339"),
        ({"time": 0.5}, "time", "not a whole number of microseconds; name the unit"),
        ({"time": "2026-01-31 09:30Z"}, "time", "not RFC 3339"),
        ({"key": None}, "key", "'key' is missing"),
        ({"key": ""}, "key", "non-empty text or an integer"),
        ({"key": False}, "key", "non-empty text or an integer"),
        ({"data": 3}, "data", "must be a JSON object"),
    ],
)
def test_what_is_wrong_is_refused_with_its_field(changes: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(EventRejected, match=reason) as caught:
        parse_plain(line(**changes), ORDERS)
    assert caught.value.details["field"] == field


def test_undeclared_types_are_refused() -> None:
    with pytest.raises(EventRejected, match="'A' is not declared for stream 'orders'"):
        parse_plain(line(), StreamDeclaration(name="orders", event_types=("B",)))


@given(event_lists())
def test_rendered_events_are_read_back(events: list[Event]) -> None:
    assert [parse_plain(render_plain(event), ORDERS) for event in events] == events
