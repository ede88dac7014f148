"""The API process, ``python -m api``. Its settings are read from the environment."""

from __future__ import annotations

import gc
import math
import sys
from contextlib import suppress

import uvicorn

from api.app import create_app
from api.errors import NotListening
from api.protocol import protocol_with
from api.stopping import watch_stop
from service import Settings, run_process


def main() -> int:
    """Serve until SIGTERM or SIGINT; return the exit status of ``run_process``."""
    return run_process("api", _serve)


def _serve(settings: Settings) -> None:
    app = create_app(settings, has_workers=True)
    gc.freeze()  # objects loaded so far live as long as the process, so the garbage collector need not scan them
    config = uvicorn.Config(
        app,
        host=settings.api_host,
        port=settings.api_port,
        http=protocol_with(settings.api_read_timeout_s),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(settings.stop_timeout_s),
    )
    server = uvicorn.Server(config)
    watch_stop(app, server)
    with suppress(SystemExit):  # uvicorn exits with its own statuses
        server.run()
    if not server.started:
        raise NotListening(f"the API did not start on {settings.api_host}:{settings.api_port}; see the log above")


if __name__ == "__main__":
    sys.exit(main())
