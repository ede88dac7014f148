"""``forestall serve``: API, pipeline and webhook delivery in one command."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path
from threading import Event
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from pipeline import check_java
from service.access.keyring import KeyRing
from service.access.keys import KeyLibrary
from service.cli.output import EventsAsJson, Tell, standard_error, telling
from service.cli.settings import warn_of_unknown
from service.cli.waiting import LINES_REST_S, Waiting, waiting_on
from service.client import Client
from service.doctor import at_risk
from service.embedded import port_fault
from service.errors import PortInUse, StoreUnavailable
from service.observing.logs import configure_logs
from service.observing.tracing import require_tracer
from service.processes.supervisor import CHILDREN, CONSOLE, Death, Supervisor
from service.readiness import missing_part
from service.settings import PREFIX, Settings, load_settings
from service.settings_files import use_config
from service.stores import KeyStore, connect, server_facts
from streams import SystemClock

_LOOKED_EVERY_S = 0.5
_KEY_FILE = "first-api-key"


class _Announcer:
    def __init__(self, address: str, client: Client, tell: Tell, waiting: Waiting, console: str = "") -> None:
        self._address = address
        self._console = console
        self._tell = tell
        self._client = client
        self._waiting = waiting
        self._is_ready = False
        self._looks_at = 0.0

    def look(self) -> None:
        if self._is_ready or time.monotonic() < self._looks_at:
            return
        self._looks_at = time.monotonic() + _LOOKED_EVERY_S
        reason = missing_part(self._client)
        if reason is None:
            self._is_ready = True
            self._waiting.clear()
            console = f", console at [bold]{self._console}[/bold]" if self._console else ""
            sentence = f"[green]ready[/green]: {self._address}/v1, description at {self._address}/docs{console}; "
            fields = {"console": self._console} if self._console else {}
            self._tell("ready", f"{sentence}Ctrl-C ends it", url=f"{self._address}/v1", **fields)
        else:
            self._waiting(reason)


def serve(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of the API (default: FORESTALL_API_PORT).")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML file with settings; the environment takes precedence.", exists=True),
    ] = None,
    is_json: EventsAsJson = False,
) -> None:
    """Run the whole service until it is interrupted."""
    if config is not None:
        use_config(config)
    check_java()
    settings = load_settings()
    warn_of_unknown()
    require_tracer(settings.tracing)
    number = port or settings.api_port
    require_free(settings.api_host, number)
    console = _console(settings)
    address = f"http://{settings.api_host}:{number}"
    secret = settings.api_key.get_secret_value() if settings.api_key else None
    configure_logs(settings.log_level)
    tell = telling(is_json=is_json)
    children = {**CHILDREN, **(CONSOLE if console else {})}
    supervisor = Supervisor(settings, {f"{PREFIX}API_PORT": str(number)}, children)
    stop = Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: stop.set())
    with ExitStack() as ends:
        ends.callback(supervisor.stop)
        supervisor.start()
        tell_risks(supervisor.redis_url)
        try:
            out = Console(stderr=True, soft_wrap=True, highlight=False)
            tell_first_key(settings, supervisor.redis_url, out)
        except StoreUnavailable as error:
            standard_error.warning(f"cannot find out whether an API key exists: {error.message}")
        folder = str(settings.data_dir.resolve())
        tell("starting", f"starting; data and logs in {escape(folder)}", data_dir=folder)
        client = ends.enter_context(Client(address, secret, patience_s=0.0))
        waiting = ends.enter_context(_waiting(tell, is_json=is_json))
        supervisor.on_death = partial(_tell_death, tell, waiting.clear)
        supervisor.run(stop, each_round=_Announcer(address, client, tell, waiting, console).look)
    tell("stopped", "stopped")


def _waiting(tell: Tell, *, is_json: bool) -> AbstractContextManager[Waiting]:
    if is_json:
        return nullcontext(Waiting(lambda text: tell("waiting", text, reason=text), LINES_REST_S))
    return waiting_on()


def tell_risks(redis_url: str) -> None:
    """Warn of acknowledged data that the Redis server may lose. If Redis does not answer, warn of this instead."""
    try:
        with connect(redis_url, retries=0) as client:
            risks = list(at_risk(server_facts(client)))
    except StoreUnavailable as error:
        standard_error.warning(error.message)
        return
    for risk in risks:
        standard_error.warning(f"{risk.subject}: {risk.found}; {risk.advice}")


def tell_first_key(settings: Settings, redis_url: str, out: Console) -> None:
    """Create a key with all rights if keys are required and none exists, and show its token once.

    On a terminal, the token is printed. Otherwise it is written to a file that only this user can read, because
    standard error may be stored as a log.
    """
    with connect(redis_url) as client:
        store = KeyStore(client)
        clock = SystemClock()
        token = KeyLibrary(store, KeyRing(store, settings, clock), settings, clock).create_first()
    if token is None:
        return
    if out.is_terminal:
        out.print(f"[green]first API key[/green], with all rights, shown only once: {token}")
        return
    file = settings.data_dir / _KEY_FILE
    try:
        file.unlink(missing_ok=True)
        file.touch(mode=0o600)
        file.write_text(f"{token}\n", encoding="ascii")
    except OSError as error:  # printed, because without the first key no other key can be created
        out.print(f"first API key, with all rights, as {escape(str(file))} cannot be written ({error}): {token}")
        return
    out.print(
        f"first API key, with all rights: in {escape(str(file.resolve()))}; take it from there and delete the file"
    )


def _tell_death(tell: Tell, clear: Callable[[], None], death: Death) -> None:
    clear()
    fields = {"reason": death.reason} if death.reason else {}
    tell(
        "process-died",
        f"[yellow]{escape(death.sentence)}[/yellow]",
        name=death.name,
        status=death.status,
        restart_in_s=death.pause_s,
        log=str(death.log_file),
        **fields,
    )


def _console(settings: Settings) -> str:
    if not settings.console_port:
        return ""
    try:
        require_free(settings.console_host, settings.console_port, f"{PREFIX}CONSOLE_PORT")
    except PortInUse as error:
        standard_error.warning(f"no console: {error.message}")
        return ""
    return f"http://{settings.console_host}:{settings.console_port}"


def require_free(host: str, port: int, setting: str = f"{PREFIX}API_PORT") -> None:
    """Check that a port is free, because otherwise clients would reach another program."""
    if (fault := port_fault(host, port)) is not None:
        raise PortInUse(
            f"port {port} on {host} cannot be used ({fault}); choose another with --port or {setting}", port=port
        )
