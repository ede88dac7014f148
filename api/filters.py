"""Filters of lists: what they name must be known, so that a slip is not taken for an empty list."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from api.services import Served
from service.stores import AlertFilter


def known_stream(
    services: Served,
    stream: Annotated[
        str | None, Query(description="Only those of this stream. Keys that are restricted to streams have to say one.")
    ] = None,
) -> str | None:
    """The stream that a list is filtered by.

    Raises:
        UnknownStream: It is not declared.
    """
    if stream is not None:
        services.stores.registry.stream(stream)
    return stream


def known_pattern(
    services: Served,
    pattern: Annotated[str | None, Query(description="Only alerts of this pattern.")] = None,
) -> str | None:
    """The pattern that alerts are filtered by; one that was deleted and has left alerts is known.

    Raises:
        UnknownPatternName: It is not registered and has no alerts.
    """
    if pattern is not None and not services.stores.alerts.page(AlertFilter(pattern=pattern), limit=1).alerts:
        services.stores.registry.pattern(pattern)
    return pattern


def of_stream(stream: str | None) -> dict[str, str]:
    """Which counters belong to a list that is filtered by a stream, or is not."""
    return {} if stream is None else {"stream": stream}


StreamFilter = Annotated[str | None, Depends(known_stream)]
PatternFilter = Annotated[str | None, Depends(known_pattern)]
OlderThan = Annotated[str | None, Query(description="'next' of an earlier page: what is older than that page.")]
