"""Asks the shards questions. A shard answers from its state, and names the log position at which the answer holds.

If the tasks of the pipeline run continuously, they answer between two steps. With micro-batches, a question is a record
of the log, and each shard answers at the position of this record. In both cases, the answer covers all events
acknowledged before the question.

The caller waits on the event loop, so a waiting caller blocks no thread. One thread sends all questions that arrived
while it was sending the previous ones. If several callers ask, it sends at most once per ``_GATHERED_S``, because
sending several questions costs little more than sending one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from service.errors import AnswersLate, PipelineAway, QuestionRefused, TooManyQuestions
from service.observing.overview import missing_parts
from service.questions.inbox import Awaited, Inbox
from service.runtime import Stores
from service.settings import Settings
from shards import OperatorRefused
from streams import Ask, Clock

_GATHERED_S = 0.01

Readings: TypeAlias = MutableMapping[Any, Any]
"""Values that were read from the stores, shared by the questions that are sent together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardQuestion:
    """A question to an operator that reads a stream by its correlation key.

    The question goes to the shard of ``key``, or to every shard if ``key`` is None.
    """

    stream: str
    operator: str
    question: Mapping[str, Any]
    key: str | None = None


@dataclass(frozen=True, slots=True)
class _Unsent:
    awaited: Awaited
    read: Callable[[Readings], ShardQuestion]


class Questions:
    """Sends questions to the shards and awaits their answers. An instance belongs to one event loop.

    The number of questions at the same time and the waiting time of each question are limited.
    """

    def __init__(self, stores: Stores, settings: Settings, clock: Clock) -> None:
        self._stores = stores
        self._settings = settings
        self._clock = clock
        self._inbox = Inbox(stores.questions)
        self._asking = 0
        self._unsent: list[_Unsent] = []
        self._sending: asyncio.Task[None] | None = None

    def end(self) -> None:
        """End the thread that reads answers. Call this when no question is asked any more."""
        self._inbox.end()

    async def ask(self, read: Callable[[Readings], ShardQuestion]) -> Sequence[Mapping[str, Any]]:
        """Ask the shards the question that ``read`` returns, and return the answers.

        ``read`` is called in a thread. An answer has the members ``shard``, ``position`` and ``answer``. The question
        is refused if too many questions are waiting, if the pipeline does not run, or if a shard cannot answer. Raises
        ``AnswersLate`` if not all shards answer in time.
        """
        self._require_seat()
        awaited = self._inbox.begin()
        self._asking += 1
        try:
            self._unsent.append(_Unsent(awaited, read))
            if self._sending is None:
                self._sending = asyncio.create_task(self._send())
            return _answers(await awaited.answers)
        except TimeoutError as error:
            if awaited.shards is None:  # an error that was raised while the question was sent
                raise
            raise AnswersLate(
                f"not all of {awaited.shards} shards have answered within {self._settings.limits.question_wait_s:g} s "
                "(FORESTALL_LIMITS__QUESTION_WAIT_S): they answer when they have matched what was in the log "
                "before the question; GET /v1/pipeline shows the backlog; try again when it is small",
                shards=awaited.shards,
            ) from error
        finally:
            self._inbox.forget(awaited.question)
            self._asking -= 1

    def _require_seat(self) -> None:
        most = self._settings.limits.questions_at_once
        if self._asking >= most:
            raise TooManyQuestions(
                f"{most} questions are being answered already, the maximum (FORESTALL_LIMITS__QUESTIONS_AT_ONCE); try "
                "again in a second",
                limit=most,
            )

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        while self._unsent:
            begun_s = loop.time()
            batch, self._unsent = self._unsent, []
            try:
                outcomes = await asyncio.to_thread(self._send_batch, batch)
            except Exception as error:  # house: allow broad-except: raised where each question is asked
                outcomes = [error] * len(batch)
            for unsent, outcome in zip(batch, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    unsent.awaited.fail(outcome)
                else:
                    unsent.awaited.sent_to(outcome)
            questions = [unsent.awaited.question for unsent in batch]
            loop.call_later(self._settings.limits.question_wait_s, self._inbox.give_up, questions)
            if self._asking > 1:
                await asyncio.sleep(begun_s + _GATHERED_S - loop.time())
        self._sending = None

    def _send_batch(self, batch: Sequence[_Unsent]) -> list[int | Exception]:
        """Send questions. Return for each question the number of shards that will answer, or an error."""
        readings: Readings = {}
        outcomes: dict[str, int | Exception] = {}  # by id of the question
        asks_by_target: dict[tuple[str, str | None], list[Ask]] = {}
        for unsent in batch:
            try:
                question = unsent.read(readings)
                self._require_pipeline(readings)
            except Exception as error:  # house: allow broad-except: raised where the question is asked
                outcomes[unsent.awaited.question] = error
            else:
                ask = Ask(id=unsent.awaited.question, operator=question.operator, question=question.question)
                asks_by_target.setdefault((question.stream, question.key), []).append(ask)
        for (stream, key), asks in asks_by_target.items():
            outcomes |= dict.fromkeys((record.id for record in asks), self._send_asks(stream, key, asks))
        return [outcomes[unsent.awaited.question] for unsent in batch]

    def _send_asks(self, stream: str, key: str | None, asks: Sequence[Ask]) -> int | Exception:
        """Send questions to the shard of a key, or to all shards. Return the number of shards, or the error."""
        try:
            return self._stores.announcements.ask(stream, asks, self._settings.limits.question_wait_s, key)
        except Exception as error:  # house: allow broad-except: raised where each question is asked
            return error

    def _require_pipeline(self, readings: Readings) -> None:
        if "missing" not in readings:
            last_us = readings.get("last_us")
            readings["missing"] = missing_parts(self._stores, self._settings, self._clock, last_us)
        if missing := readings["missing"]:
            raise PipelineAway(
                f"only the pipeline knows the state of transactions, and it does not run: {missing[0]}; GET /v1/ready "
                "says when it does, and GET /v1/traces/{stream}/{key} reads one transaction from the log"
            )


def _answers(answers: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    for answer in answers:
        if "answer" not in answer:
            error = answer["error"]
            if "field" in error:
                raise OperatorRefused(error["message"], field=error["field"])
            raise QuestionRefused(f"shard {answer['shard']} does not answer: {error['message']}")
    return answers
