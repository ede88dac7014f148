"""Addresses of created resources: the header ``Location`` (RFC 9110)."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import Response

from api.access.auth import VERSION

LOCATION = {"Location": {"description": "Its address.", "required": True, "schema": {"type": "string"}}}


def give_location(response: Response, *parts: str) -> None:
    """Set the address of a created resource, given as the parts of its path."""
    response.headers["Location"] = "/".join((VERSION, *(quote(part, safe="") for part in parts)))
