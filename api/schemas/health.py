"""Health on the wire."""

from __future__ import annotations

from importlib.metadata import version
from typing import Literal

from pydantic import Field

from api.wire import WireModel


class Health(WireModel):
    """The process is up."""

    status: Literal["ok"] = "ok"
    version: str = Field(default_factory=lambda: version("forestall"), description="The release that answers.")


class Ready(WireModel):
    """The service takes events and matches them."""

    status: Literal["ready"] = "ready"
