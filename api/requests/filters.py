"""Filters of lists. Unknown values are refused, because a typing error would otherwise look like an empty list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Query

from api.services import Served
from service import AlertFilter, Caller, InvalidCursor, Order


class _OfStream(Protocol):
    """A resource with its stream. The stream is None if the resource belongs to no single stream."""

    @property
    def stream(self) -> str | None: ...


_Item = TypeVar("_Item", bound=_OfStream)

Now = Annotated[
    bool,
    Query(
        description="Pause before the backlog: each shard stops at its next step. "
        "`skipped` in the answer is the backlog that is not matched."
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
    """Return the stream by which a list is filtered. A stream that is not registered is refused."""
    if stream is not None:
        services.stores.registry.stream(stream)
    return stream


def known_pattern(
    services: Served,
    pattern: Annotated[str | None, Query(description="Only alerts of this pattern.")] = None,
) -> str | None:
    """Return the pattern by which alerts are filtered. A pattern without alerts must be registered."""
    if pattern is not None and not services.stores.alerts.page(AlertFilter(pattern=pattern), limit=1).items:
        services.stores.registry.named(pattern)
    return pattern


def reachable(items: Iterable[_Item], caller: Caller, stream: str | None) -> list[_Item]:
    """Return the items of a list that the caller may access. If ``stream`` is given, leave out other streams' items."""
    return [item for item in items if caller.may_touch(item.stream) and stream in (None, item.stream)]


def of_stream(stream: str | None) -> dict[str, str]:
    """Return the arguments that restrict a list's counters to ``stream``. Without a stream, there are none."""
    return {} if stream is None else {"stream": stream}


StreamFilter = Annotated[str | None, Depends(known_stream)]
PatternFilter = Annotated[str | None, Depends(known_pattern)]


def paging(
    after: Annotated[
        str | None,
        Query(
            description="A cursor: `next` of a page for the following one, `after` for newer items; `0`: the oldest."
        ),
    ] = None,
    order: Annotated[
        Order | None, Query(description="Newest first (`desc`, the default) or oldest first; a cursor has its order.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> dict[str, Any]:
    """Return the requested page of a growing list, as arguments for the method ``page`` of the list's store."""
    return {"after": after, "order": order, "limit": limit}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The requested part of a list of resources that clients declare, such as streams, in contrast to a growing list.

    Without a limit, the part extends to the end of the list.
    """

    after: str | None
    limit: int | None

    def of(self, items: Sequence[object], member: str) -> dict[str, Any]:
        """Return the items of this part, and the next cursor.

        The cursor is the ``member`` of the last item. At the end of the list, the cursor is None.
        """
        names = [str(getattr(item, member)) for item in items]
        if self.after is not None and self.after not in names:
            raise InvalidCursor(f"after={self.after!r} is not, or no longer, in the list; leave it out")
        begin = 0 if self.after is None else names.index(self.after) + 1
        end = len(items) if self.limit is None else begin + self.limit
        return {"items": items[begin:end], "next": names[end - 1] if end < len(items) else None}


def part(
    after: Annotated[str | None, Query(description="`next` of an earlier part, for the items after it.")] = None,
    limit: Annotated[int | None, Query(ge=1, le=1000, description="At most this number; default: all.")] = None,
) -> Part:
    """Return the requested part of a list."""
    return Part(after=after, limit=limit)


WantedPage = Annotated[dict[str, Any], Depends(paging)]
WantedPart = Annotated[Part, Depends(part)]
