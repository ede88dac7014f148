"""Test helpers: a private server, settings for tests, a clock that is set by hand, a receiver of webhooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Thread
from typing import Any, cast

import orjson
from pydantic import SecretStr

from service.embedded import EmbeddedServer
from service.settings import Settings
from service.stores import Client, ConstraintsDraft, RegisteredConstraints, Registry, connect
from shards import RESULT_KINDS, OutputRow
from streams import STREAMS_KEY

_WEBHOOK_PATH = "/alerts"


@dataclass(slots=True)
class HandClock:
    """A clock that stands still until it is moved."""

    time_us: int = 1_767_225_600_000_000

    def now_us(self) -> int:
        return self.time_us

    def forward(self, seconds: float) -> None:
        """Advance the clock."""
        self.time_us += round(seconds * 1_000_000)


def sink_row(*, kind: str, stream: str, id: str, body: bytes, position: str = "1-0", shard: int = 0) -> OutputRow:
    """A row as the pipeline passes it to the sink, with the columns that a shard derives from its body."""
    members = {**orjson.loads(body), "stream": stream}
    return OutputRow(
        kind=kind,
        stream=stream,
        id=id,
        body=body,
        position=position,
        shard=shard,
        subject=RESULT_KINDS[kind].subject_of(members),
        counter=RESULT_KINDS[kind].counter_of(members),
    )


def stats_row(shard: int, position: str, **measures: object) -> OutputRow:
    """The report of a shard that is matched up to ``position``; ``measures`` as in ``pipeline.measures``."""
    body = orjson.dumps({"shard": shard, "entries": 1, "bytes": 0, **measures})
    return sink_row(kind="stats", stream="", id=f"{shard}-{position}", body=body, position=position, shard=shard)


def as_old_as_the_log(client: Client, stream: str) -> None:
    """Make a declared stream older than every entry, as tests name small positions."""
    body = orjson.loads(cast("bytes", client.hget(STREAMS_KEY, stream)))
    client.hset(STREAMS_KEY, stream, orjson.dumps({**body, "since_ms": 0}))


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
    """A client of a server whose data is deleted first."""
    with connect(url) as client:
        client.flushall()
        yield client


@contextmanager
def answering(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """Serve HTTP on loopback (port 0: a free one) while the block runs; yields the URL, without a path."""

    class Silent(handler):  # type: ignore[valid-type,misc]
        def log_message(self, format: str, *arguments: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", port), Silent) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, name="answering")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@dataclass(slots=True)
class HandReceiver:
    """The requests posted to a server, and its answers.

    Attributes:
        statuses: The statuses of its first answers, in turn; redirects lead to itself.
        retry_after: Header ``Retry-After`` of answers that are no success; empty: none.
        received: Header fields, their names in small letters, and body of each request.
        arrived: Held while a request is stored, and notified of it.
    """

    url: str = ""
    usual_status: int = 200
    statuses: list[int] = field(default_factory=list)
    retry_after: str = ""
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    arrived: Condition = field(default_factory=Condition)

    @property
    def site(self) -> str:
        """The server's URL, without a path."""
        return self.url.removesuffix(_WEBHOOK_PATH)

    @property
    def bodies(self) -> list[bytes]:
        """The bodies of all requests, in their order."""
        return [body for _, body in self.received]

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """Store a request; returns the status of the answer."""
        with self.arrived:
            self.received.append((headers, body))
            self.paths.append(path)
            self.arrived.notify_all()
            return self.statuses.pop(0) if self.statuses else self.usual_status

    def ids(self) -> list[str]:
        """The ids of all requests, in their order."""
        return [headers["webhook-id"] for headers, _ in self.received]

    def wait_for(self, count: int, timeout_s: float = 300) -> None:
        """Wait until a number of requests have come."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.received) >= count, timeout_s)


@contextmanager
def receiving() -> Iterator[HandReceiver]:
    """A receiver of webhooks, or of any other posts, on loopback."""
    receiver = HandReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(length := int(self.headers["content-length"]))
            if len(body) < length:
                return  # the sender was killed halfway
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = receiver.take(self.path, headers, body)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", receiver.url)
            if status >= 400 and receiver.retry_after:
                self.send_header("Retry-After", receiver.retry_after)
            self.send_header("content-length", "0")
            self.end_headers()

    with answering(Handler) as url:
        receiver.url = f"{url}{_WEBHOOK_PATH}"
        yield receiver


def settings_for(url: str, **changes: object) -> Settings:
    """Settings for one test: those given, and three shards."""
    return Settings.model_validate({"redis_url": SecretStr(url), "shards": 3, **changes})


def put_constraints(
    registry: Registry, stream: str, document: Mapping[str, Any], notices: tuple[str, ...], now_us: int
) -> tuple[RegisteredConstraints, bool]:
    """Give a stream a constraint set, without the checks of ``Registration``."""
    draft = ConstraintsDraft(document=document, notices=notices)
    return registry.constraints.put(stream, lambda _: draft, now_us)
