"""``forestall serve``: API, pipeline and webhook delivery in one command."""

from __future__ import annotations

import signal
from threading import Event
from typing import Annotated

import typer

from pipeline import check_java
from service.cli.inputs import told
from service.client import ForestallClient
from service.logs import configure_logs
from service.settings import PREFIX, load_settings
from service.supervisor import Supervisor


def serve(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of the API; FORESTALL_API_PORT else.")
    ] = None,
) -> None:
    """Run the whole service until it is interrupted."""
    check_java()
    settings = load_settings()
    address = f"http://{settings.api_host}:{port or settings.api_port}"
    secret = settings.api_key.get_secret_value() if settings.api_key else None
    configure_logs(settings.log_level)
    supervisor = Supervisor(settings, {f"{PREFIX}API_PORT": str(port or settings.api_port)})
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    supervisor.start()
    told.print(f"starting; data and logs in {settings.data_dir.resolve()}")
    client = ForestallClient(address, secret)
    is_told = False

    def tell_when_ready() -> None:
        nonlocal is_told
        if not is_told and client.is_ready():
            is_told = True
            told.print(f"[green]ready[/green]: {address}/v1, description at {address}/docs; Ctrl-C ends it")

    with client:
        supervisor.run(stop, each_round=tell_when_ready)
    told.print("stopped")
