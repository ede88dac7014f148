"""What all wire models share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict

from streams import EventRejected, parse_time


def _checked(text: str) -> str:
    try:
        parse_time(text)
    except EventRejected as error:
        raise ValueError(error.message) from error
    return text


Moment: TypeAlias = Annotated[str, AfterValidator(_checked)]
"""A time as RFC 3339 text."""


class WireModel(BaseModel):
    """A JSON object of the API: immutable, without fields that are not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")
