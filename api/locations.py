"""Where something new is: ``Location`` in the answer to its creation (RFC 9110)."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import Response

from api.access.auth import VERSION

LOCATION = {"Location": {"description": "Its address.", "required": True, "schema": {"type": "string"}}}


def give_location(response: Response, *parts: str) -> None:
    """Tell the address of what was created, as the parts of its path."""
    response.headers["Location"] = "/".join((VERSION, *(quote(part, safe="") for part in parts)))
