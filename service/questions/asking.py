"""Asking questions: each is appended to the log of every shard, which answers at that position from its state.

So an answer belongs to one exact position of each shard, whatever process holds the state. The caller waits on the
event loop: the answers are polled, and no thread is held in between.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from service.observing.readiness import missing_parts
from service.questions.errors import AnswersLate, PipelineAway, QuestionRefused, TooManyQuestions
from service.runtime import Stores
from service.settings import Settings
from streams import Ask, Clock

_FIRST_S, _LONGEST_S = 0.02, 0.25  # between two polls


class Questions:
    """Asks the shards, a bounded number of questions for a bounded time; belongs to one event loop."""

    def __init__(self, stores: Stores, settings: Settings, clock: Clock) -> None:
        self._stores = stores
        self._settings = settings
        self._clock = clock
        self._asking = 0

    async def ask(
        self, stream: str, operator: str, question: Mapping[str, Any], *, key: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """Ask the operators of a kind at the correlation key of a stream, or only in the shard of the key ``key``.

        The kind reads the question. Returns ``shard``, ``position`` and ``answer`` of each shard. Refused if this
        process already asks the maximum number of questions, the pipeline does not run, or a shard cannot answer;
        ``AnswersLate`` if not all shards have answered in time.
        """
        with self._seat():
            asked = Ask(id=uuid.uuid4().hex, operator=operator, question=question)
            shards = await asyncio.to_thread(self._append, stream, asked, key)
            try:
                return _answers(await self._wait(asked.id, shards))
            finally:
                await asyncio.to_thread(self._stores.questions.forget, asked.id)

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

    def _append(self, stream: str, asked: Ask, key: str | None) -> int:
        missing = missing_parts(self._stores, self._settings, self._clock)
        if missing:
            raise PipelineAway(
                f"only the pipeline knows the state of transactions, and it does not run: {missing[0]}; GET /v1/ready "
                "says when it does, and GET /v1/traces/{stream}/{key} reads one transaction from the log"
            )
        return self._stores.announcements.append(stream, asked, key)

    async def _wait(self, question: str, shards: int) -> Sequence[Mapping[str, Any]]:
        wait_s = self._settings.limits.question_wait_s
        end_s, pause_s = monotonic() + wait_s, _FIRST_S
        while True:
            found = await asyncio.to_thread(self._stores.questions.read, question, shards)
            if found is not None:
                return found
            if monotonic() >= end_s:
                raise AnswersLate(
                    f"not all of {shards} shards have answered within {wait_s:g} s "
                    "(FORESTALL_LIMITS__QUESTION_WAIT_S): they answer when they have matched what was in the log "
                    "before the question; GET /v1/pipeline shows the backlog; try again when it is small",
                    shards=shards,
                )
            await asyncio.sleep(min(pause_s, max(0.0, end_s - monotonic())))
            pause_s = min(2 * pause_s, _LONGEST_S)


def _answers(found: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    for one in found:
        if "answer" not in one:
            raise QuestionRefused(f"shard {one['shard']} does not answer: {one['error']['message']}")
    return found
