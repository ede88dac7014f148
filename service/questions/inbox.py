"""The inbox of answers: one thread reads all answers for this process while any question awaits answers."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from itertools import count
from threading import Lock, Thread
from typing import Any

from service.errors import StoreUnavailable
from service.stores import QuestionStore

_POLL_S = 0.5
_PAUSE_S = 0.1


class Awaited:
    """A question whose answers a caller awaits. It belongs to the event loop in which it was created.

    ``shards`` is the number of shards that were asked, or None until the question is sent. When all these shards have
    answered, the result of ``answers`` is the list of answers, sorted by shard.
    """

    def __init__(self, question: str) -> None:
        self.question = question
        self.loop = asyncio.get_running_loop()
        self.answers: asyncio.Future[Sequence[Mapping[str, Any]]] = self.loop.create_future()
        self._answers: dict[int, Mapping[str, Any]] = {}
        self.shards: int | None = None

    def sent_to(self, shards: int) -> None:
        self.shards = shards
        self._end_if_complete()

    def put(self, answer: Mapping[str, Any]) -> None:
        """Add the answer of a shard. Called in the event loop."""
        self._answers[answer["shard"]] = answer
        self._end_if_complete()

    def fail(self, error: Exception) -> None:
        """Raise an error in the caller, unless all answers have arrived or the caller no longer waits."""
        if not self.answers.done():
            self.answers.set_exception(error)

    def _end_if_complete(self) -> None:
        if self.shards is not None and len(self._answers) >= self.shards and not self.answers.done():
            self.answers.set_result([self._answers[shard] for shard in sorted(self._answers)])


class Inbox:
    """Reads the answers to the questions of this process, in one thread."""

    def __init__(self, store: QuestionStore) -> None:
        self._store = store
        self._asker = uuid.uuid4().hex
        self._numbers = count(1)
        self._awaited: dict[str, Awaited] = {}
        self._lock = Lock()
        self._thread: Thread | None = None

    def begin(self) -> Awaited:
        """Start to read the answers to a new question, until ``forget`` is called."""
        awaited = Awaited(f"{self._asker}.{next(self._numbers)}")
        with self._lock:
            if self._thread is None:
                thread = Thread(target=self._read, name="answers", daemon=True)
                thread.start()
                self._thread = thread
            self._awaited[awaited.question] = awaited
        return awaited

    def forget(self, question: str) -> None:
        with self._lock:
            del self._awaited[question]

    def give_up(self, questions: Sequence[str]) -> None:
        """Raise ``TimeoutError`` in callers that still wait for these questions. Called in the event loop."""
        for awaited in map(self._awaited.get, questions):
            if awaited is not None:
                awaited.fail(TimeoutError())

    def end(self) -> None:
        """Wait until the thread has ended. Call this when no answers are awaited any more."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _read(self) -> None:
        while self._is_awaited():
            try:
                answers = self._store.take(self._asker, _POLL_S)
            except StoreUnavailable:  # the callers then report late answers
                time.sleep(_PAUSE_S)
                continue
            with self._lock:
                pairs = [(self._awaited.get(answer["question"]), answer) for answer in answers]
            awaited_answers = [(awaited, answer) for awaited, answer in pairs if awaited is not None]
            if awaited_answers:  # all questions belong to the same event loop
                awaited_answers[0][0].loop.call_soon_threadsafe(_deliver, awaited_answers)

    def _is_awaited(self) -> bool:
        with self._lock:
            if not self._awaited:
                self._thread = None
            return bool(self._awaited)


def _deliver(pairs: Sequence[tuple[Awaited, Mapping[str, Any]]]) -> None:
    for awaited, answer in pairs:
        awaited.put(answer)
