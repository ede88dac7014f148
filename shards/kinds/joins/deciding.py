"""The decider of joins with ``wait: auto``, which finishes keys of their inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shards.operators import DeciderKind

if TYPE_CHECKING:
    from joins import WaitDecider

WAIT = "wait"


def _new() -> WaitDecider:
    from joins import WaitDecider  # noqa: PLC0415 - takes long

    return WaitDecider()


def _loaded(state: Mapping[str, Any]) -> WaitDecider:
    from joins import WaitDecider  # noqa: PLC0415 - takes long

    return WaitDecider.from_json(state)


WAIT_DECIDER = DeciderKind(name=WAIT, make=_new, load=_loaded)
