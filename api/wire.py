"""What all wire models share."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

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


_TOLD_ONCE: Final = "told-once"

Secret: TypeAlias = Annotated[
    str | None,
    Field(description="Told this once; null in the answer to a request that came before with its Idempotency-Key."),
    _TOLD_ONCE,
]
"""What only the first answer to a request tells, and nobody keeps."""


class WireModel(BaseModel):
    """A JSON object of the API: immutable, without fields that are not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def secrets_of(model: object) -> frozenset[str]:
    """Members of a model that are told once."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return frozenset()
    return frozenset(name for name, field in model.model_fields.items() if _TOLD_ONCE in field.metadata)
