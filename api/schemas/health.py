"""Health on the wire."""

from __future__ import annotations

from typing import Literal

from api.wire import WireModel


class Health(WireModel):
    """The process is up."""

    status: Literal["ok"] = "ok"


class Ready(WireModel):
    """The service takes events and matches them."""

    status: Literal["ready"] = "ready"
