"""Messages between the API process and a worker process."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

Header: TypeAlias = tuple[bytes, bytes]


class Limit(StrEnum):
    """The limits that a request in a worker process may exceed: its time, its memory, or the size of its answer."""

    TIME = "time"
    MEMORY = "memory"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A request for a worker process. ``scope`` and ``state`` contain only what can be sent to another process."""

    scope: dict[str, Any]
    state: dict[str, Any]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a request, and additions to the request's state.

    If the request exceeded a limit, only ``beyond`` is set. If ``is_last`` is true, the worker process exits after this
    answer.
    """

    status: int = 0
    headers: tuple[Header, ...] = ()
    body: bytes = b""
    state: dict[str, Any] = field(default_factory=dict)
    beyond: Limit | None = None
    is_last: bool = False
