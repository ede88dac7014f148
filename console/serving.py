"""The console's server."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import uvicorn

from console.app import create_console

_STOP_S = 2  # seconds; pages that follow alerts then reconnect


def serve(url: str, host: str, port: int, hosts: Collection[str] = ()) -> None:
    """Serve the console of the service at ``url`` until the process is stopped.

    ``hosts`` are names by which browsers reach the console, besides IP addresses and ``localhost``.
    """
    config = uvicorn.Config(
        create_console(url, hosts=hosts),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_STOP_S,
    )
    with suppress(SystemExit):  # uvicorn exits with its own statuses
        uvicorn.Server(config).run()
