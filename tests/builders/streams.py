"""Hypothesis strategies for events, for tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from streams.event import Event
from streams.timestamps import EARLIEST_US, LATEST_US


def texts(min_size: int = 0, max_size: int = 8) -> st.SearchStrategy[str]:
    """Any text that UTF-8 can carry."""
    return st.text(st.characters(codec="utf-8"), min_size=min_size, max_size=max_size)


def scalars() -> st.SearchStrategy[Any]:
    """Scalar JSON values; integers of 64 bits, finite floats."""
    return (
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts()
    )


def attributes() -> st.SearchStrategy[dict[str, Any]]:
    """Attributes of an event: small JSON objects, sometimes nested."""
    values = st.recursive(
        scalars(), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts(), inner, max_size=2), max_leaves=4
    )
    return st.dictionaries(texts(), values, max_size=3)


def times_us() -> st.SearchStrategy[int]:
    """Times that RFC 3339 can write, often equal."""
    return st.integers(0, 5) | st.integers(EARLIEST_US, LATEST_US)


@st.composite
def event_lists(draw: st.DrawFn, max_size: int = 8) -> list[Event]:
    """Events with unique ids, in no particular order of time."""
    ids = draw(st.lists(texts(1), max_size=max_size, unique=True))
    return [
        Event(id=name, type=draw(texts(1)), time_us=draw(times_us()), key=draw(texts(1)), data=draw(attributes()))
        for name in ids
    ]
