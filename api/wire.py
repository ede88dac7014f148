"""What all wire models share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class WireModel(BaseModel):
    """A JSON object of the API: immutable, without fields that are not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")
