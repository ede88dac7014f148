"""``forestall console``: the web console of a running service."""

from __future__ import annotations

import signal
from typing import Annotated

import typer
from rich.markup import escape

from service.cli.calling import Url
from service.cli.output import standard_error
from service.cli.serve import require_free
from service.processes.console_process import serve_console
from service.settings import load_settings

_FIRST = 8010


def console(
    url: Url = None,
    host: Annotated[str | None, typer.Option(help="Address of the console (default: FORESTALL_CONSOLE_HOST).")] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of the console (default: FORESTALL_CONSOLE_PORT).")
    ] = None,
) -> None:
    """Serve the web console of the running service until it is interrupted."""
    settings = load_settings()
    changes = {
        "url": url or settings.url,
        "console_host": host or settings.console_host,
        "console_port": port or settings.console_port or _FIRST,
    }
    settings = settings.model_copy(update=changes)
    require_free(settings.console_host, settings.console_port, "FORESTALL_CONSOLE_PORT")
    address = f"http://{settings.console_host}:{settings.console_port}"
    standard_error.print(f"console at [green]{escape(address)}[/green]; Ctrl-C ends it")
    for sign in (signal.SIGINT, signal.SIGTERM):  # the server raises the signal again after it has ended
        signal.signal(sign, lambda *_: None)
    serve_console(settings)
