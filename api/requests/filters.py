"""Filters of lists: their values must be known, so that a typing error is not taken for an empty list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Protocol, TypeVar

from fastapi import Depends, Query

from api.services import Served
from service import AlertFilter, Caller


class _OfStream(Protocol):
    """A resource that belongs to a stream, or to no stream."""

    @property
    def stream(self) -> str | None: ...


_Item = TypeVar("_Item", bound=_OfStream)

Now = Annotated[
    bool,
    Query(
        description="Take effect before the backlog: each shard stops showing it events at its next step; "
        "`skipped` in the answer is the backlog that it does not see."
    ),
]


def known_stream(
    services: Served,
    stream: Annotated[
        str | None,
        Query(
            description="Only items of this stream. Required for keys that are restricted to streams, in lists with "
            "pages."
        ),
    ] = None,
) -> str | None:
    """The stream by which a list is filtered."""
    if stream is not None:
        services.stores.registry.stream(stream)
    return stream


def known_pattern(
    services: Served,
    pattern: Annotated[str | None, Query(description="Only alerts of this pattern.")] = None,
) -> str | None:
    """The pattern by which alerts are filtered; a deleted pattern with alerts is known."""
    if pattern is not None and not services.stores.alerts.page(AlertFilter(pattern=pattern), limit=1).alerts:
        services.stores.registry.operator(pattern)
    return pattern


def shown(items: Iterable[_Item], caller: Caller, stream: str | None) -> list[_Item]:
    """The items of a list without pages that the caller may touch, of a stream if one is given."""
    return [item for item in items if caller.may_touch(item.stream) and stream in (None, item.stream)]


def of_stream(stream: str | None) -> dict[str, str]:
    """The filter for the counters of a list: by stream if one is given."""
    return {} if stream is None else {"stream": stream}


StreamFilter = Annotated[str | None, Depends(known_stream)]
PatternFilter = Annotated[str | None, Depends(known_pattern)]
OlderThan = Annotated[str | None, Query(description="'next' of an earlier page, for the items older than that page.")]
