"""What a request remembers of its caller, from the door to the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from api.errors import Unauthorized
from service import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that is asked for, for the audit log.

    Attributes:
        method: HTTP method.
        route: Path of the operation, with its parameters by name.
        path: The path that was asked for.
    """

    method: str
    route: str
    path: str


def caller_of(request: Request) -> Caller:
    """Who sent a request.

    Raises:
        Unauthorized: Nobody looked, so nobody may pass.
    """
    caller = getattr(request.state, "caller", None)
    if not isinstance(caller, Caller):
        raise Unauthorized("send an API key")
    return caller


Calling = Annotated[Caller, Depends(caller_of)]
