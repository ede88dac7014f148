"""Ends endless answers when the process is asked to stop, because the process waits for all answers."""

from __future__ import annotations

from collections.abc import Callable

import uvicorn
from fastapi import Request
from starlette.applications import Starlette


def watch_stop(app: Starlette, server: uvicorn.Server) -> None:
    """Let ``stop_sign`` report when the server is asked to stop."""
    app.state.is_stopping = lambda: server.should_exit


def stop_sign(request: Request) -> Callable[[], bool]:
    """A function that returns whether the request's server is stopping; always False without ``watch_stop``."""
    is_stopping: Callable[[], bool] = getattr(request.app.state, "is_stopping", lambda: False)
    return is_stopping
