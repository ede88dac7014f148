"""Whether the process is about to stop: endless answers must end then, as the process waits for them."""

from __future__ import annotations

from collections.abc import Callable

import uvicorn
from fastapi import FastAPI, Request


def watch_stop(app: FastAPI, server: uvicorn.Server) -> None:
    """Let the application know when its server is asked to stop."""
    app.state.is_stopping = lambda: server.should_exit


def stop_sign(request: Request) -> Callable[[], bool]:
    """Tells whether the server of a request is to stop; never, where nobody watches."""
    found: Callable[[], bool] = getattr(request.app.state, "is_stopping", lambda: False)
    return found
