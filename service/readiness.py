"""The readiness of a running service as seen by a client, and a function that waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable

from service.client import ApiError, Client, ServiceUnreachable
from streams.compiling import COMPILING

_POLL_S = 0.2


def missing_part(client: Client) -> str | None:
    """Ask the service once, and return its missing parts in words, or None if the service is ready."""
    try:
        client.with_patience(0.0).ready.get()
    except ApiError as error:
        return error.detail
    except ServiceUnreachable as error:
        return f"waiting for the API: {error.message}" if error.details["is_listening"] else "starting the API"
    return None


def await_ready(missing: Callable[[], str | None], say: Callable[[str], None], patience_s: float) -> str | None:
    """Wait until no part is missing. Return None, or the parts that are still missing at the deadline.

    ``say`` is called a few times a second with the missing parts. The deadline is ``patience_s`` after the call, or
    after the last report of a compiled kernel.
    """
    last_reason, deadline = "", time.monotonic() + patience_s
    while (reason := missing()) is not None and time.monotonic() < deadline:
        if COMPILING in reason and reason != last_reason:
            last_reason, deadline = reason, time.monotonic() + patience_s
        say(reason)
        time.sleep(_POLL_S)
    return reason
