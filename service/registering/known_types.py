"""The event types that a stream is known to have."""

from __future__ import annotations

from service.runtime import Stores
from service.stores import EventFilter

_NEWEST = 500


def known_types(stores: Stores, stream: str) -> set[str]:
    """Return the types of a stream that have schemas, and those of its newest events."""
    of_stream = EventFilter(stream=stream, since_ms=stores.registry.since_ms(stream))
    newest = stores.event_pages(of_stream, None, _NEWEST).items
    return {*stores.registry.event_types.all(stream), *(event["type"] for event in newest)}
