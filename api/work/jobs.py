"""What goes to a worker process and comes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

Header: TypeAlias = tuple[bytes, bytes]


class Limit(StrEnum):
    """What a request was beyond."""

    TIME = "time"
    MEMORY = "memory"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A request.

    Attributes:
        scope: Its ASGI scope, as far as it can be sent to another process.
        state: What was found out about it so far.
        body: Its body.
    """

    scope: dict[str, Any]
    state: dict[str, Any]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a request is answered with.

    Attributes:
        status: HTTP status.
        headers: Header fields.
        body: The body.
        state: What was found out about the request meanwhile.
        beyond: The limit that it was beyond; the rest is empty then.
        is_last: Whether the worker process ends with this answer.
    """

    status: int = 0
    headers: tuple[Header, ...] = ()
    body: bytes = b""
    state: dict[str, Any] = field(default_factory=dict)
    beyond: Limit | None = None
    is_last: bool = False
