"""The inbox of answers: one thread reads the answers to all questions of a process, while some are awaited."""

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
    """The awaited answers to one question, by shard; belongs to the event loop in which it was created."""

    def __init__(self, question: str) -> None:
        self.question = question
        self.loop = asyncio.get_running_loop()
        self._found: dict[int, Mapping[str, Any]] = {}
        self._news = asyncio.Event()

    async def wait(self, wanted: int) -> Sequence[Mapping[str, Any]]:
        """The answers, once ``wanted`` shards have answered."""
        while len(self._found) < wanted:
            self._news.clear()
            await self._news.wait()
        return [self._found[shard] for shard in sorted(self._found)]

    def put(self, answer: Mapping[str, Any]) -> None:
        """Add an answer; called in the event loop."""
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
        """Wait for the end of the thread, when no answers are awaited any more."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _read(self) -> None:
        while self._is_awaited():
            try:
                answers = self._store.take(self._asker, _LOOKED_S)
            except StoreUnavailable:  # then the answers are late
                time.sleep(_PAUSE_S)
                continue
            with self._lock:
                found = [(self._awaited.get(answer["question"]), answer) for answer in answers]
            wanted = [(one, answer) for one, answer in found if one is not None]
            if wanted:  # all belong to one event loop
                wanted[0][0].loop.call_soon_threadsafe(_put, wanted)

    def _is_awaited(self) -> bool:
        with self._lock:
            if not self._awaited:
                self._thread = None
            return bool(self._awaited)


def _put(found: Sequence[tuple[Awaited, Mapping[str, Any]]]) -> None:
    for one, answer in found:
        one.put(answer)
