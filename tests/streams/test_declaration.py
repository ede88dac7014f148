"""Stream declarations are valid once constructed."""

from typing import Any

import pytest

from streams import StreamDeclaration
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
        ({"key": ""}, "key"),
        ({"event_types": ("A",), "end_events": ("A", "B")}, "end_events"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        StreamDeclaration(**{"name": "orders", **changes})
    assert caught.value.details["field"] == field


def test_end_events_need_no_declared_types() -> None:
    assert StreamDeclaration(name="orders", end_events=("Done",)).end_events == ("Done",)
