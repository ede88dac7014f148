"""Answers as they come back: one thread reads those to all questions of a process, while some are awaited."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Lock, Thread
from typing import Any

from service.errors import StoreUnavailable
from service.stores import QuestionStore

_LOOKED_S = 0.5
_PAUSE_S = 0.1


class Awaited:
    """The answers to one question, by shard; belongs to the event loop that made it."""

    def __init__(self, question: str) -> None:
        self.question = question
        self._loop = asyncio.get_running_loop()
        self._found: dict[int, Mapping[str, Any]] = {}
        self._news = asyncio.Event()

    def put(self, answer: Mapping[str, Any]) -> None:
        """Hand in an answer from any thread."""
        self._loop.call_soon_threadsafe(self._take, answer)

    async def wait(self, wanted: int) -> Sequence[Mapping[str, Any]]:
        """The answers, once ``wanted`` shards have answered."""
        while len(self._found) < wanted:
            self._news.clear()
            await self._news.wait()
        return [self._found[shard] for shard in sorted(self._found)]

    def _take(self, answer: Mapping[str, Any]) -> None:
        self._found[answer["shard"]] = answer
        self._news.set()


class Inbox:
    """Reads the answers to the questions of this process."""

    def __init__(self, store: QuestionStore) -> None:
        self._store = store
        self._asker = uuid.uuid4().hex
        self._numbers = count(1)
        self._awaited: dict[str, Awaited] = {}
        self._lock = Lock()
        self._thread: Thread | None = None

    @contextmanager
    def awaited(self) -> Iterator[Awaited]:
        """Read the answers to a new question while the block runs."""
        one = Awaited(f"{self._asker}.{next(self._numbers)}")
        with self._lock:
            self._awaited[one.question] = one
            if self._thread is None:
                self._thread = Thread(target=self._read, name="answers", daemon=True)
                self._thread.start()
        try:
            yield one
        finally:
            with self._lock:
                del self._awaited[one.question]

    def end(self) -> None:
        """Wait for the end of the thread; nothing is awaited any more."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _read(self) -> None:
        while self._is_awaited():
            try:
                answers = self._store.take(self._asker, _LOOKED_S)
            except StoreUnavailable:  # the question is late then
                time.sleep(_PAUSE_S)
                continue
            with self._lock:
                for answer in answers:
                    if (one := self._awaited.get(answer["question"])) is not None:
                        one.put(answer)

    def _is_awaited(self) -> bool:
        with self._lock:
            if not self._awaited:
                self._thread = None
            return bool(self._awaited)
