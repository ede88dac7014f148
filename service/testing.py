"""For tests: a private server for a test session, settings without surprises, a clock that is set by hand."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
from pydantic import SecretStr

from service.embedded import EmbeddedServer
from service.settings import Settings
from service.stores import Client, connect


@dataclass(slots=True)
class HandClock:
    """A clock that stands still until it is moved."""

    time_us: int = 1_767_225_600_000_000

    def now_us(self) -> int:
        return self.time_us

    def forward(self, seconds: float) -> None:
        """Move on."""
        self.time_us += round(seconds * 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRow:
    """A row as the pipeline hands it to the sink."""

    kind: str
    stream: str
    id: str
    body: bytes
    position: str = "1-0"
    shard: int = 0


def stats_row(shard: int, position: str, **told: object) -> SinkRow:
    """What a shard tells when it is matched up to ``position``; ``told`` as in ``pipeline.measures``."""
    body = orjson.dumps({"shard": shard, "entries": 1, "bytes": 0, **told})
    return SinkRow(kind="stats", stream="", id=f"{shard}-{position}", body=body, position=position, shard=shard)


@contextmanager
def private_server(folder: Path) -> Iterator[str]:
    """A real server with an append-only file in ``folder``; yields its URL and stops it in the end."""
    server = EmbeddedServer(folder)
    try:
        yield server.start()
    finally:
        server.stop()


@contextmanager
def empty_client(url: str) -> Iterator[Client]:
    """A client of a server that forgets all it knows first."""
    with connect(url) as client:
        client.flushall()
        yield client


def settings_for(url: str, **changes: object) -> Settings:
    """Settings for one test: those given, and three shards."""
    return Settings.model_validate({"redis_url": SecretStr(url), "shards": 3, **changes})


@dataclass(slots=True)
class HttpReceiver:
    """A server on this machine that takes whatever is posted.

    Attributes:
        url: Where it listens, without a path.
        received: Path, headers by names in small letters, and body of what came.
        statuses: What it answers with, one after the other; then 200.
    """

    url: str = ""
    received: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    @property
    def bodies(self) -> list[bytes]:
        """Of all that came, in its order."""
        return [body for _, _, body in self.received]


@contextmanager
def receiving() -> Iterator[HttpReceiver]:
    """Receive on a free port of loopback while the block runs."""
    receiver = HttpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.received.append((self.path, headers, body))
            self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
