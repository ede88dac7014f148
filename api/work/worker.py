"""A worker process: the application without the authentication middleware. It answers one request at a time."""

from __future__ import annotations

import asyncio
import faulthandler
import resource
import signal
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import structlog
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import Message

from api.errors import problem
from api.exchange import REQUEST_ID
from api.work.jobs import Answer, Job, Limit
from service import Settings, WorkSettings, configure_logs
from shards import PatternKind
from streams import ForestallError
from streams.compiling import progress_of, run_exercise

_KEPT_STATE = ("change", "route")  # members of the state that middleware reads later
_WORN = 0.5  # a process is replaced when its memory has grown by this share of the memory limit
_CPU_FACTOR = 2

log = structlog.get_logger(__name__)


def run_worker(connection: Connection, make: Callable[[Settings], FastAPI], settings: Settings) -> None:
    """Answer requests until the other end of the connection closes.

    The worker sends None once it is ready. Then it repeatedly receives a ``Job`` and sends its ``Answer``.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process decides
    faulthandler.enable()  # a crash leaves the Python stack in the log
    configure_logs(settings.log_level)
    _load_kernels()
    asyncio.run(_answer_all(connection, make(settings), settings.work))


def _load_kernels() -> None:
    """Load the compiled kernels of patterns, so that the first dry run need not load them."""
    if progress_of([PatternKind.exercise]).is_complete:
        run_exercise(PatternKind.exercise)


class _Bounds:
    """Limits of this process, where the platform supports them: memory since its start, and CPU time of each job.

    The memory limit covers only writable memory (``RLIMIT_DATA``), because much of the address space is never used.
    ``RLIMIT_CPU`` stops a job that continues after its client has disconnected.
    """

    def __init__(self, limits: WorkSettings) -> None:
        self._limits = limits
        self._begin_bytes = data_bytes()
        if self._begin_bytes:
            most = self._begin_bytes + limits.max_memory_bytes
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))

    @property
    def is_worn(self) -> bool:
        return data_bytes() - self._begin_bytes > _WORN * self._limits.max_memory_bytes

    def begin(self) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        most_s = int(used.ru_utime + used.ru_stime + _CPU_FACTOR * self._limits.max_time_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most_s, resource.RLIM_INFINITY))


def data_bytes(process: int | str = "self") -> int:
    """Return the writable memory of a process in bytes. If the platform does not report it, return 0."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), 0)


async def _answer_all(connection: Connection, app: FastAPI, limits: WorkSettings) -> None:
    bounds = _Bounds(limits)
    async with AsyncExitStack() as ends:
        opened: Mapping[str, Any] | ForestallError | None
        try:
            lifespan: AbstractAsyncContextManager[Any] = app.router.lifespan_context(app)
            opened = await ends.enter_async_context(lifespan)
        except ForestallError as error:
            opened = error
        is_last = False
        connection.send(None)
        while not is_last:
            try:
                job: Job = connection.recv()
            except (EOFError, OSError):
                return
            bounds.begin()
            answer = await _refused(opened) if isinstance(opened, ForestallError) else await _answered(app, job, opened)
            if len(answer.body) > limits.max_answer_bytes:
                answer = Answer(beyond=Limit.ANSWER)
            is_last = isinstance(opened, ForestallError) or answer.beyond is Limit.MEMORY or bounds.is_worn
            connection.send(replace(answer, is_last=is_last))


async def _refused(error: ForestallError) -> Answer:
    """Return the answer to all requests while the stores cannot be opened."""
    response = problem(error)
    return Answer(status=response.status_code, headers=tuple(response.raw_headers), body=bytes(response.body))


async def _answered(app: FastAPI, job: Job, opened: Mapping[str, Any] | None) -> Answer:
    state = {**(opened or {}), **job.state}
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": job.body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    structlog.contextvars.bind_contextvars(request_id=Headers(raw=job.scope["headers"]).get(REQUEST_ID, ""))
    try:
        await app({**job.scope, "app": app, "state": state}, receive, send)
    except MemoryError:
        return Answer(beyond=Limit.MEMORY)
    # house: allow broad-except: the application has answered 500, and the next request is independent
    except Exception:
        if not sent:
            raise
        log.exception("request-failed", method=job.scope["method"], path=job.scope["path"])
    return Answer(
        status=sent[0]["status"],
        headers=tuple((bytes(name), bytes(value)) for name, value in sent[0]["headers"]),
        body=b"".join(message.get("body", b"") for message in sent[1:]),
        state={name: state[name] for name in _KEPT_STATE if name in state},
    )
