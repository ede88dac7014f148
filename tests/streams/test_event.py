"""An event as a value."""

from typing import Any

import pytest

from streams import Event
from streams.errors import EventRejected


def test_data_defaults_to_no_attributes() -> None:
    assert Event(id="e", type="A", time_us=0, key="k").data == {}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"id": ""}, "id"),
        ({"type": None}, "type"),
        ({"key": 5}, "key"),
        ({"time_us": "0"}, "time"),
        ({"time_us": True}, "time"),
        ({"time_us": 2**63}, "time"),
        ({"time_us": -(2**63) - 1}, "time"),
        ({"id": "\ud800"}, "id"),
        ({"key": "\ud800"}, "key"),
        ({"data": {"n": 2**70}}, "data"),
        ({"data": {"text": "\ud800"}}, "data"),
        ({"data": {"\ud800": 1}}, "data"),
    ],
)
def test_invalid_parts_are_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(EventRejected) as caught:
        Event(**{"id": "e", "type": "A", "time_us": 0, "key": "k", **changes})
    assert caught.value.details["field"] == field
