"""Operations that create a resource, and the header ``Location`` with the resource's address (RFC 9110)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import Depends, Response, status

from api.access.auth import VERSION
from api.errors import WrongShape
from api.requests.idempotency import once

_LOCATION = {"Location": {"description": "Its address.", "required": True, "schema": {"type": "string"}}}


def creation(
    summary: str, again: str = "", model: object = None, status_code: int = status.HTTP_201_CREATED
) -> dict[str, Any]:
    """Return the options of an operation that creates a resource, for the decorator of a route.

    The resource is created once per ``Idempotency-Key``. ``again`` describes the answer 200, for a resource that exists
    already. ``model`` is the form of that answer.
    """
    responses: dict[int, Any] = {status_code: {"headers": _LOCATION}}
    if again:
        responses[status.HTTP_200_OK] = {"model": model, "description": again}
    dependencies = [Depends(once)]
    return {"status_code": status_code, "summary": summary, "dependencies": dependencies, "responses": responses}


def require_segment(name: str, member: str) -> None:
    """Check that a name from a request can be a segment of a path.

    Raises ``WrongShape`` for ``.`` and ``..``, because clients remove such segments. ``member`` is the path parameter
    that contains the name.
    """
    if name in (".", ".."):
        raise WrongShape(f"path.{member}: '.' and '..' have a meaning of their own in paths; use another name")


def give_location(response: Response, *parts: str) -> None:
    """Set the header ``Location`` to the address of a created resource. ``parts`` are the segments of its path."""
    response.headers["Location"] = "/".join((VERSION, *(quote(part, safe="") for part in parts)))
