"""The whole service for a while, in a folder of its own: for the demo and for tests of the whole."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe
from threading import Event, Thread

from service.client import ForestallClient
from service.errors import ServiceNotReady
from service.settings import PREFIX, Settings
from service.supervisor import Supervisor, describe_death

_READY_S = 600.0  # the first time the kernels are compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryService:
    """A service that runs until the block ends.

    Attributes:
        url: Where the API listens.
        api_key: What it asks for.
        client: Has the key, and patience over restarts.
        supervisor: Tends the processes.
    """

    url: str
    api_key: str
    client: ForestallClient
    supervisor: Supervisor


@contextmanager
def running(
    folder: Path, say: Callable[[str], None] = lambda _: None, more: Mapping[str, str] | None = None
) -> Iterator[TemporaryService]:
    """The whole service in ``folder`` on a free port, ready; stopped at the end.

    Webhooks may go to loopback, and nothing waits longer than it has to.

    Args:
        folder: For all its files.
        say: Told what happens.
        more: Further settings, as environment variables without their prefix.

    Raises:
        ServiceNotReady: It does not get ready in time; the message shows the last lines of the logs.
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
    settings = Settings(data_dir=folder, redis_url=None)
    supervisor = Supervisor(
        settings,
        {PREFIX + name: value for name, value in variables.items()},
        on_death=lambda *death: say(describe_death(*death)),
    )
    say("starting Redis, the API, Spark and the deliverer (the first start compiles kernels)")
    supervisor.start()
    stop = Event()
    tending = Thread(target=supervisor.run, args=(stop,), name="supervisor")
    tending.start()
    url = f"http://127.0.0.1:{port}"
    try:
        with ForestallClient(url, key) as client:
            await_ready(client, supervisor)
            say(f"ready: {url}/v1")
            yield TemporaryService(url=url, api_key=key, client=client, supervisor=supervisor)
    finally:
        stop.set()
        tending.join()


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_ready(client: ForestallClient, supervisor: Supervisor) -> None:
    """Wait until every part is ready.

    Raises:
        ServiceNotReady: It takes too long.
    """
    deadline = time.monotonic() + _READY_S
    while not client.is_ready():
        if time.monotonic() > deadline:
            raise ServiceNotReady(f"not ready after {_READY_S:.0f} s; the logs end with:\n{_tails(supervisor)}")
        time.sleep(0.2)


def _tails(supervisor: Supervisor) -> str:
    tails: list[str] = []
    for log_file in sorted(supervisor.log_folder.glob("*.log")):
        lines = log_file.read_text(errors="replace").splitlines()[-5:]
        tails += [f"  {log_file.name}: {line}" for line in lines]
    return "\n".join(tails)
