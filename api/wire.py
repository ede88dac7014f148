"""What all wire models share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from streams import EventRejected, parse_time


def _checked(text: str) -> str:
    try:
        parse_time(text)
    except EventRejected as error:
        raise ValueError(error.message) from error
    return text


Moment: TypeAlias = Annotated[str, AfterValidator(_checked)]
"""A time as RFC 3339 text."""

Older: TypeAlias = Annotated[
    str | None, Field(description="Send as 'after' for the page of older ones; null when these are all that are kept.")
]
"""The cursor of a list whose newest come first."""


class WireModel(BaseModel):
    """A JSON object of the API: immutable, without fields that are not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")
