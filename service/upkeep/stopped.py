"""The check that the pipeline does not run, for tasks that require a stopped service."""

from __future__ import annotations

from service.errors import ServiceError
from service.runtime import Stores
from service.settings import Settings
from streams import Clock

_SECOND_US = 1_000_000


def require_stopped(settings: Settings, stores: Stores, clock: Clock, refusal: type[ServiceError]) -> None:
    """Check that the pipeline neither runs nor ran a moment ago; raises an error of the class ``refusal`` otherwise."""
    last_us = stores.heartbeat.last_us()
    silent_s = None if last_us is None else max(0.0, (clock.now_us() - last_us) / _SECOND_US)
    if silent_s is not None and silent_s <= settings.heartbeat_stale_s:
        raise refusal(
            f"the pipeline reported {silent_s:.0f} s ago: stop the service first; one that was killed "
            f"counts as gone after {settings.heartbeat_stale_s:g} s"
        )
