"""End of live answers when the server stops.

The server waits for all answers before it exits, so answers without an end of their own must check for the stop.
"""

from __future__ import annotations

from collections.abc import Callable

import uvicorn
from fastapi import Request
from starlette.applications import Starlette


def watch_stop(app: Starlette, server: uvicorn.Server) -> None:
    """Make ``stop_sign`` report when the server is asked to stop."""
    app.state.is_stopping = lambda: server.should_exit


def stop_sign(request: Request) -> Callable[[], bool]:
    """Return a function that checks whether the server is stopping. Without ``watch_stop``, it returns False."""
    is_stopping: Callable[[], bool] = getattr(request.app.state, "is_stopping", lambda: False)
    return is_stopping
