"""Readiness: what the service needs to take events and match them."""

from __future__ import annotations

from service.errors import StoreUnavailable
from service.runtime import Stores
from service.settings import Settings
from streams import Clock

_SECOND_US = 1_000_000


def missing_parts(stores: Stores, settings: Settings, clock: Clock) -> list[str]:
    """The missing parts, in words; none if the service is ready."""
    try:
        last_us = stores.heartbeat.last_us()
    except StoreUnavailable:
        return ["Redis does not answer"]
    if last_us is None:
        failure = stores.heartbeat.failure()
        doing = stores.heartbeat.is_doing() or "its process has not started yet"
        return [f"waiting for the pipeline: {doing}{f'; it ended before: {failure}' if failure else ''}"]
    silent_s = (clock.now_us() - last_us) / _SECOND_US
    if silent_s > settings.heartbeat_stale_s:
        busy = stores.heartbeat.is_doing()
        return [f"the pipeline has not reported for {silent_s:.0f} s{f': {busy}' if busy else ''}"]
    return []
