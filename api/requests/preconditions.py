"""Preconditions of requests (RFC 9110): ``ETag``, ``If-Match``, ``If-None-Match``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Header, Response

from api.errors import WrongShape
from api.validators import declared_tag
from service import Condition, tag_of

if TYPE_CHECKING:
    from service import Record

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e]*)"')
_LONGEST = 2_000


def condition(
    if_match: Annotated[
        str | None,
        Header(
            description="Change the resource only if it still has this `ETag` (or one of several); `*`: only if it "
            "exists."
        ),
    ] = None,
    if_none_match: Annotated[
        str | None, Header(description="`*`: only create; do not change an existing resource.")
    ] = None,
) -> Condition:
    """Return the precondition of a change. Raise ``WrongShape`` if a header is not a list of entity tags."""
    return Condition(matches=_tags("If-Match", if_match), none_matches=_tags("If-None-Match", if_none_match))


Preconditions = Annotated[Condition, Depends(condition)]


def give_tag(response: Response, record: Record) -> None:
    """Set the header ``ETag`` of an answer to the record's entity tag."""
    response.headers["ETag"] = f'"{tag_of(record)}"'


def _tags(name: str, text: str | None) -> tuple[str, ...] | None:
    """Return the entity tags in a header. Weak tags are dropped, because they never match for a change."""
    if text is None:
        return None
    if text.strip() == "*":
        return ("*",)
    parts = [part.strip() for part in text.split(",")] if len(text) <= _LONGEST else [""]
    tag_matches = [_TAG.fullmatch(part) for part in parts]
    if None in tag_matches:
        raise WrongShape(f'header.{name}: write one or more ETags as they were given, in "quotes", or *')
    return tuple(declared_tag(match[2]) for match in tag_matches if match is not None and not match[1])
