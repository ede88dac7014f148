"""Runs a temporary service in its own folder, for the demo and for tests of the whole service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe

from service.client import Client
from service.embedded import free_port
from service.errors import ServiceNotReady
from service.process import beside
from service.processes.supervisor import CHILDREN, CONSOLE, Supervisor
from service.readiness import await_ready, missing_part
from service.settings import PREFIX, Settings

_READY_S = 600.0  # without progress; a busy machine needed 244
_MOST_STARTS = 5
_PATIENCE_S = 60.0
_OVERLOAD_PATIENCE_S = 1_800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryService:
    """A service that runs until the block ends. Its client sends the API key, and retries while the service restarts.

    ``console`` is the address of the web console, or empty if the console does not run.
    """

    url: str
    api_key: str
    client: Client
    supervisor: Supervisor
    console: str = ""


@contextmanager
def running(
    folder: Path,
    say: Callable[[str], None] = lambda _: None,
    more: Mapping[str, str] | None = None,
    *,
    wait: Callable[[str], None] = lambda _: None,
    has_console: bool = False,
) -> Iterator[TemporaryService]:
    """Run the service in ``folder`` on a free port while the block runs. The block starts when the service is ready.

    Webhooks may call loopback addresses. Polling intervals and pauses are short. ``say`` receives messages, and
    ``wait`` receives the parts that are not ready. ``more`` has further settings by variable name without the prefix.
    Raises ``ServiceNotReady`` with the last lines of the logs if the service does not become ready.
    """
    port, key = free_port(), token_urlsafe(24)
    variables = {
        "DATA_DIR": str(folder),
        "API_PORT": str(port),
        "API_KEY": key,
        "WEBHOOKS__ALLOW_PRIVATE_TARGETS": "true",
        "WEBHOOKS__POLL_INTERVAL_S": "0.1",
        "WEBHOOKS__FIRST_DELAY_S": "1",
        "TRIGGER_INTERVAL_S": "0.2",
        **(more or {}),
    }
    console_port = free_port({port}) if has_console else 0
    variables["CONSOLE_PORT"] = str(console_port)
    settings = Settings(data_dir=folder, redis_url=None, api_port=port, console_port=console_port)
    supervisor = Supervisor(
        settings,
        {PREFIX + name: value for name, value in variables.items()},
        {**CHILDREN, **(CONSOLE if has_console else {})},
        on_death=lambda death: say(death.sentence),
    )
    say("starting Redis, the API, Spark and the deliverer")
    supervisor.start()
    url = f"http://127.0.0.1:{port}"
    patience = {"patience_s": _PATIENCE_S, "overload_patience_s": _OVERLOAD_PATIENCE_S}
    with beside(supervisor.run, "supervisor"), Client(url, key, **patience) as client:
        require_ready(client, supervisor, wait)
        say(f"ready: {url}/v1")
        console = f"http://127.0.0.1:{console_port}" if has_console else ""
        yield TemporaryService(url=url, api_key=key, client=client, supervisor=supervisor, console=console)


def require_ready(client: Client, supervisor: Supervisor, wait: Callable[[str], None] = lambda _: None) -> None:
    """Wait until every part is ready. Raises ``ServiceNotReady`` if this takes too long or a process keeps dying."""
    keeps_dying = watch(supervisor)

    def look(missing: str) -> None:
        if reason := keeps_dying():
            raise ServiceNotReady(reason)
        wait(missing)

    if await_ready(lambda: missing_part(client), look, _READY_S) is not None:
        raise ServiceNotReady(f"not ready after {_READY_S:.0f} s; the logs end with:\n{_tails(supervisor)}")


def watch(supervisor: Supervisor) -> Callable[[], str]:
    """Return a function that says which processes keep dying, with the ends of their logs.

    The starts of a process are counted from this call on. The text is empty if no process keeps dying.
    """
    before = {name: supervisor.starts(name) for name in supervisor.children}

    def keeps_dying() -> str:
        names = [name for name, starts in before.items() if supervisor.starts(name) >= starts + _MOST_STARTS]
        ends = f" ended {_MOST_STARTS} times; the logs end with:\n{_tails(supervisor)}" if names else ""
        return ", ".join(names) + ends

    return keeps_dying


def _tails(supervisor: Supervisor) -> str:
    tails: list[str] = []
    for log_file in sorted(supervisor.log_folder.glob("*.log")):
        lines = log_file.read_text(errors="replace").splitlines()[-5:]
        tails += [f"  {log_file.name}: {line}" for line in lines]
    return "\n".join(tails)
