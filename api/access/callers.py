"""The caller of a request and its change, kept in the request's state until it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from api.errors import Unauthorized
from service import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A requested change, for the audit log; ``route`` is the operation's path with its parameters by name."""

    method: str
    route: str
    path: str


def caller_of(request: Request) -> Caller:
    """The authenticated caller of a request; raises ``Unauthorized`` without one."""
    caller = getattr(request.state, "caller", None)
    if not isinstance(caller, Caller):
        raise Unauthorized("send an API key")
    return caller


Calling = Annotated[Caller, Depends(caller_of)]
