"""Operations that create a resource, and its address: the header ``Location`` (RFC 9110)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import Depends, Response, status

from api.access.auth import VERSION
from api.requests.idempotency import once

_LOCATION = {"Location": {"description": "Its address.", "required": True, "schema": {"type": "string"}}}


def creation(
    summary: str, again: str = "", model: object = None, status_code: int = status.HTTP_201_CREATED
) -> dict[str, Any]:
    """The options of an operation that creates a resource, once for each ``Idempotency-Key``.

    ``again`` describes the answer (200) if the resource exists already, ``model`` is its form.
    """
    responses: dict[int, Any] = {status_code: {"headers": _LOCATION}}
    if again:
        responses[status.HTTP_200_OK] = {"model": model, "description": again}
    dependencies = [Depends(once)]
    return {"status_code": status_code, "summary": summary, "dependencies": dependencies, "responses": responses}


def give_location(response: Response, *parts: str) -> None:
    """Set the address of a created resource, given as the parts of its path."""
    response.headers["Location"] = "/".join((VERSION, *(quote(part, safe="") for part in parts)))
