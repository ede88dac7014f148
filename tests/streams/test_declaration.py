"""Stream declarations are valid once constructed."""

from dataclasses import fields
from typing import Any

import pytest

from streams import CHANGEABLE, FieldMapping, StreamDeclaration
from streams.errors import DeclarationError


@pytest.mark.parametrize("name", ["orders", "a", "7.b_c-d", "x" * 100])
def test_names_are_taken(name: str) -> None:
    assert StreamDeclaration(name=name).name == name


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "-a"}, "name"),
        ({"name": "a b"}, "name"),
        ({"name": "a\n"}, "name"),
        ({"name": "ö"}, "name"),
        *(({"key": path}, "key") for path in ("", "a..b", ".a", "a.")),
        *(({"mapping": FieldMapping.from_json({name: "a..b"})}, "mapping") for name in ("id", "type", "time", "data")),
        ({"event_types": ("A",), "end_events": ("A", "B")}, "end_events"),
        ({"description": "x" * 4_001}, "description"),
        *(({"keys": {name: "data.x"}}, "keys") for name in ("", "a.b", "7", "a-b", "key", "order")),
        *(({"keys": {"customer": path}}, "keys") for path in ("", "a..b", "data.order", "order")),
        ({"keys": {"a": "data.x", "b": "x"}}, "keys"),
        ({"keys": {"a": "data.b", "b": "data.x"}}, "keys"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        StreamDeclaration(**{"name": "orders", "key": "data.order", **changes})
    assert caught.value.details["field"] == field


def test_a_malformed_path_is_told_with_what_is_right() -> None:
    with pytest.raises(DeclarationError, match=r"'a\.\.b' of the correlation key .* such as data\.order\.id"):
        StreamDeclaration(name="orders", key="a..b")


def test_a_further_key_may_be_called_by_name_and_by_path() -> None:
    keys = {"customer": "data.customer.id", "place": "place"}
    declaration = StreamDeclaration(name="orders", keys=keys)
    assert declaration.route_paths("customer") == (("customer",), ("customer", "id"), ("data", "customer", "id"))
    assert declaration.route_paths("place") == (("place",),)
    assert (declaration.attribute_of("customer"), declaration.attribute_of("place")) == (("customer", "id"), ("place",))
    with pytest.raises(DeclarationError, match="declared are: customer, place"):
        declaration.route_paths("region")


@pytest.mark.parametrize("keys", [[], {"a": 1}, "a"])
def test_further_keys_are_paths_by_name(keys: Any) -> None:
    with pytest.raises(DeclarationError, match=r"object of paths by name|the further key 'a'.* is a path"):
        StreamDeclaration.from_json({"name": "orders", "keys": keys})


def test_a_stream_without_further_keys_is_stored_as_before() -> None:
    assert "keys" not in StreamDeclaration(name="orders").to_json()


def test_end_events_need_no_declared_types() -> None:
    assert StreamDeclaration(name="orders", end_events=("Done",)).end_events == ("Done",)


@pytest.mark.parametrize(
    "declaration",
    [
        StreamDeclaration(name="orders"),
        StreamDeclaration(
            name="orders",
            key="data.id",
            event_types=("A", "Z"),
            end_events=("Z",),
            ties="simultaneous",
            keys={"customer": "data.customer_id", "place": "where"},
            mapping=FieldMapping(id="nr", type="what", time="at", data=None),
        ),
    ],
)
def test_the_stored_form_is_read_back(declaration: StreamDeclaration) -> None:
    assert StreamDeclaration.from_json(declaration.to_json()) == declaration


def test_the_stored_form_may_leave_out_what_has_a_default() -> None:
    assert StreamDeclaration.from_json({"name": "orders"}) == StreamDeclaration(name="orders")
    partly = StreamDeclaration.from_json({"name": "orders", "mapping": {"time": "at"}})
    assert partly.mapping == FieldMapping(time="at")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "is a JSON object, got None"),
        ({}, "'name' of a stream declaration is a text, got None"),
        ({"name": 3}, "'name' .* got 3"),
        ({"name": "s", "key": None}, "'key' .* got None"),
        ({"name": "s", "event_types": "AB"}, "'event_types' of a stream declaration is a list of texts, got 'AB'"),
        ({"name": "s", "ties": "maybe"}, "write log or simultaneous"),
        ({"name": "s", "ties": [1]}, "write log or simultaneous"),
        ({"name": "s", "end_events": [1]}, r"'end_events' .* got \[1\]"),
        ({"name": "s", "mapping": []}, r"'mapping' is a JSON object of paths, got \[\]"),
        ({"name": "s", "mapping": {"x": "y"}}, "'mapping' has x; it takes id, type, time, data, time_unit, zone"),
        ({"name": "s", "mapping": {"id": 1}}, "'id' .* got 1"),
        ({"name": "s", "mapping": {"data": 1}}, "'data' .* got 1"),
    ],
)
def test_a_stored_form_that_is_none_is_refused(value: object, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        StreamDeclaration.from_json(value)


@pytest.mark.parametrize(
    ("key", "paths"),
    [
        ("subject", (("subject",),)),
        ("data.order.id", (("order", "id"), ("data", "order", "id"))),
        ("order.id", (("order", "id"),)),
    ],
)
def test_the_key_has_the_names_that_a_pattern_may_use(key: str, paths: tuple[tuple[str, ...], ...]) -> None:
    assert StreamDeclaration(name="s", key=key).key_paths == paths


def test_a_description_is_kept_where_there_is_one() -> None:
    declaration = StreamDeclaration(name="orders", description="Orders of the shop.")
    assert StreamDeclaration.from_json(declaration.to_json()) == declaration
    assert "description" not in StreamDeclaration(name="orders").to_json()


def test_what_may_change_is_a_member() -> None:
    assert {*CHANGEABLE} < {part.name for part in fields(StreamDeclaration)}
