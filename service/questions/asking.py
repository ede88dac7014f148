"""Asking questions: each shard answers from its state, as of a position of its log that the answer names.

Continuous tasks answer between two steps; with micro-batches a question is a record of the log, which each shard
answers at that position. Either way the answer knows everything that was acknowledged before the question. The caller
waits on the event loop, and holds no thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from service.observing.readiness import missing_parts
from service.questions.errors import AnswersLate, PipelineAway, QuestionRefused, TooManyQuestions
from service.questions.inbox import Inbox
from service.runtime import Stores
from service.settings import Settings
from streams import Ask, Clock


class Questions:
    """Asks the shards, a bounded number of questions for a bounded time; belongs to one event loop."""

    def __init__(self, stores: Stores, settings: Settings, clock: Clock) -> None:
        self._stores = stores
        self._settings = settings
        self._clock = clock
        self._inbox = Inbox(stores.questions)
        self._asking = 0

    def end(self) -> None:
        """End the thread that reads answers; no question is being asked any more."""
        self._inbox.end()

    async def ask(
        self, stream: str, operator: str, question: Mapping[str, Any], *, key: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """Ask the operators of a kind at the correlation key of a stream, or only in the shard of the key ``key``.

        The kind reads the question. Returns ``shard``, ``position`` and ``answer`` of each shard. Refused if this
        process already asks the maximum number of questions, the pipeline does not run, or a shard cannot answer;
        ``AnswersLate`` if not all shards have answered in time.
        """
        with self._seat(), self._inbox.awaited() as awaited:
            asked = Ask(id=awaited.question, operator=operator, question=question)
            shards = await asyncio.to_thread(self._send, stream, asked, key)
            wait_s = self._settings.limits.question_wait_s
            try:
                async with asyncio.timeout(wait_s):
                    return _answers(await awaited.wait(shards))
            except TimeoutError as error:
                raise AnswersLate(
                    f"not all of {shards} shards have answered within {wait_s:g} s "
                    "(FORESTALL_LIMITS__QUESTION_WAIT_S): they answer when they have matched what was in the log "
                    "before the question; GET /v1/pipeline shows the backlog; try again when it is small",
                    shards=shards,
                ) from error

    @contextmanager
    def _seat(self) -> Iterator[None]:
        most = self._settings.limits.questions_at_once
        if self._asking >= most:
            raise TooManyQuestions(
                f"{most} questions are being answered already, the maximum (FORESTALL_LIMITS__QUESTIONS_AT_ONCE); try "
                "again in a second",
                limit=most,
            )
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1

    def _send(self, stream: str, asked: Ask, key: str | None) -> int:
        missing = missing_parts(self._stores, self._settings, self._clock)
        if missing:
            raise PipelineAway(
                f"only the pipeline knows the state of transactions, and it does not run: {missing[0]}; GET /v1/ready "
                "says when it does, and GET /v1/traces/{stream}/{key} reads one transaction from the log"
            )
        return self._stores.announcements.ask(stream, asked, self._settings.limits.question_wait_s, key)


def _answers(found: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    for one in found:
        if "answer" not in one:
            raise QuestionRefused(f"shard {one['shard']} does not answer: {one['error']['message']}")
    return found
