"""A real log server for the tests of this folder, started when a test first asks."""

import socket
import subprocess
from contextlib import contextmanager
from typing import Any

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from service import find_server


class LogServer:
    """A private Valkey on a free loopback port, with an append-only file in a folder."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis(port=self.port, retry=Retry(ConstantBackoff(0.02), 500))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self):
        log = {"appendonly": "yes", "appendfsync": "always"}  # a kill loses nothing that was acknowledged
        settings = {"port": self.port, "bind": "127.0.0.1", "dir": self.folder, "save": "", **log}
        words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        self._process = subprocess.Popen([find_server(), *words], stdout=subprocess.DEVNULL)
        assert self.client.ping()

    def kill(self):
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def append(self, logs):
        """Write entries at their own positions."""
        for shard, entries in logs.items():
            for entry in entries:
                fields: dict[Any, Any] = {"kind": entry.kind, "stream": entry.stream, "body": entry.body}
                self.client.xadd(f"forestall:log:{shard}", fields, id=entry.position)


@contextmanager
def running_server(folder):
    server = LogServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.client.close()
        server.kill()


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory):
    with running_server(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def server(shared_server):
    """An empty log server, shared by tests one after another."""
    shared_server.client.flushall()
    return shared_server


@pytest.fixture
def own_server(tmp_path):
    """A log server that a test may kill."""
    with running_server(tmp_path) as server:
        yield server
