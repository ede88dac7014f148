"""The pool of worker processes. Workers are started when needed, and killed when they take too long."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any, Self, TypeVar

from fastapi import FastAPI

from api.errors import TooBusy, WorkFailed
from api.work.jobs import Answer, Job, Limit
from api.work.worker import data_bytes, run_worker
from service import Settings

_OUT_OF_TIME = -signal.SIGXCPU
_REAPED_S = 1.0
_SAMPLED_S = 0.05
_MUCH = 0.25  # if a signal ends a process that grew by this share of the memory limit, memory is taken for the cause
_THREADS_EACH = 4  # threads that wait for killed processes are still in use

_T = TypeVar("_T")


class WorkPool:
    """A pool of worker processes. Each worker answers one request at a time.

    Workers are forked from an idle process that has loaded everything, so that a new worker starts at once. ``make``
    creates the answering application in the worker, and must be importable.
    """

    def __init__(self, make: Callable[[Settings], FastAPI], settings: Settings) -> None:
        self._make = make
        self._settings = settings
        self._limits = settings.work
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([run_worker.__module__, make.__module__])
        self._idle: list[_Worker] = []
        self._waiting = 0
        self._seats = asyncio.Semaphore(self._limits.processes)
        self._threads = ThreadPoolExecutor(_THREADS_EACH * self._limits.processes, "work")

    async def answer(self, job: Job) -> Answer:
        """Let a worker process answer a request, and return the answer. Cancelling this call stops the work.

        Raises ``TooBusy`` if too many requests are waiting, and ``WorkFailed`` if the process failed.
        """
        await self._wait_for_seat()
        try:
            return await self._answered(job)
        finally:
            self._seats.release()

    async def _wait_for_seat(self) -> None:
        limits = self._limits
        if self._seats.locked() and self._waiting >= limits.max_waiting:
            raise TooBusy(
                f"{self._waiting} requests wait for one of {limits.processes} processes already; try again later",
                limit=limits.max_waiting,
                setting="FORESTALL_WORK__MAX_WAITING",
            )
        self._waiting += 1
        try:
            await self._seats.acquire()
        finally:
            self._waiting -= 1

    async def __aenter__(self) -> Self:
        """Start a worker in the background, before it is needed."""
        self._beginning = asyncio.create_task(self._begin())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Kill the idle worker processes."""
        await self._beginning
        while self._idle:
            self._idle.pop().kill()
        self._threads.shutdown()

    async def _begin(self) -> None:
        self._idle.append(await self._in_thread(self._new))

    async def _answered(self, job: Job) -> Answer:
        answer: Answer | None = None
        while answer is None and self._idle:
            answer = await self._ask(self._idle.pop(), job)
        if answer is None:
            answer = await self._ask(await self._in_thread(self._new), job)
        if answer is None:
            raise WorkFailed("a worker process failed at its start; its log says why")
        return answer

    async def _ask(self, worker: _Worker, job: Job) -> Answer | None:
        answer: Answer | None = None
        try:
            answer = await asyncio.wait_for(self._in_thread(worker.ask, job), self._limits.max_time_s)
            return answer
        except TimeoutError:
            return Answer(beyond=Limit.TIME)
        finally:
            if answer is None or answer.is_last:
                worker.kill()
            else:
                self._idle.append(worker)

    def _in_thread(self, call: Callable[..., _T], *args: Any) -> asyncio.Future[_T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, call, *args)

    def _new(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=run_worker, args=(theirs, self._make, self._settings), name="forestall-work", daemon=True
        )
        process.start()
        theirs.close()
        with suppress(EOFError, OSError):
            ours.recv()  # sent once ready; a worker that failed to start reports the error at its first request
        return _Worker(process=process, connection=ours, much_bytes=round(_MUCH * self._limits.max_memory_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worker:
    """A worker process. ``much_bytes`` is the growth in a request from which its memory may have ended it."""

    process: ForkServerProcess
    connection: Connection
    much_bytes: int

    def ask(self, job: Job) -> Answer | None:
        """Answer a request in this process. If a limit of memory or time kills the process, the answer names the limit.

        Returns None if the process has exited before the request, so that another process can answer it. Raises
        ``WorkFailed`` if the process ends for another reason than a limit.
        """
        begin_bytes = peak_bytes = data_bytes(self.process.pid or 0)  # before the job, which allocates at once
        try:
            self.connection.send(job)
        except OSError:
            self.process.join(_REAPED_S)
            return None
        try:
            while not self.connection.poll(_SAMPLED_S):
                peak_bytes = max(peak_bytes, data_bytes(self.process.pid or 0))
            answer: Answer = self.connection.recv()
        except (EOFError, OSError):
            self.process.join(_REAPED_S)
            return self._answer_of_death(peak_bytes - begin_bytes)
        return answer

    def _answer_of_death(self, grown_bytes: int) -> Answer:
        status = self.process.exitcode or 0
        if status == _OUT_OF_TIME:
            return Answer(beyond=Limit.TIME, is_last=True)
        if status < 0 and grown_bytes >= self.much_bytes:
            return Answer(beyond=Limit.MEMORY, is_last=True)
        if status < 0:
            name = signal.strsignal(-status)
            raise WorkFailed(f"signal {-status} ({name}) ended a worker process; its log or the system's says why")
        raise WorkFailed("a worker process failed; its log says why")

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
