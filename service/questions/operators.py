"""Questions to operators, for example about the groups of an aggregate. The answers of all shards are merged."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.errors import AnswersLate, OperatorAway, PipelineAway, RequestRefused, TooManyQuestions
from service.questions.asking import Questions, Readings, ShardQuestion
from service.runtime import Stores
from service.stores import RegisteredOperator, StreamTimes
from shards import DocumentKind, OperatorRefused
from streams import AutoLateness, Definition, StreamDeclaration

_INDEX_WAIT_S = 1.0  # an explanation does not wait for a backlog


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAnswer:
    """The answer of an operator, exact at the position in each shard's log that ``positions`` names.

    ``members`` depends on the kind of the operator.
    """

    positions: Mapping[int, str]
    members: Mapping[str, Any]


class OperatorQuestions:
    """Asks questions to operators of the kinds that can answer, and merges the answers of shards."""

    def __init__(self, stores: Stores, questions: Questions) -> None:
        self._stores = stores
        self._questions = questions

    async def ask(self, kind: DocumentKind, name: str, document: Mapping[str, Any]) -> OperatorAnswer:
        """Ask an operator a question in all shards, and merge the answers."""
        definition, replies = await self._replies(kind, name, document)
        members = kind.answer_of(definition, document, [reply["answer"] for reply in replies])
        return OperatorAnswer(positions={reply["shard"]: reply["position"] for reply in replies}, members=members)

    async def indexes(self, kind: DocumentKind, name: str) -> list[Mapping[str, Any]]:
        """Return, for each shard, a description of the index from which an operator answers questions.

        The list is empty if the operator cannot answer questions, or does not answer soon.
        """
        if not kind.is_asked:
            return []
        try:
            async with asyncio.timeout(_INDEX_WAIT_S):
                _, replies = await self._replies(kind, name, {"explain": "only"})
        except (RequestRefused, OperatorRefused, PipelineAway, AnswersLate, TooManyQuestions, TimeoutError):
            return []
        return [{"shard": reply["shard"], **reply["answer"]["index"]} for reply in replies]

    async def _replies(
        self, kind: DocumentKind, name: str, document: Mapping[str, Any]
    ) -> tuple[Definition, Sequence[Mapping[str, Any]]]:
        definition: Definition | None = None

        def read(readings: Readings) -> ShardQuestion:
            nonlocal definition
            if (kind.name, name) not in readings:
                readings[kind.name, name] = self._running(kind, name, readings)
            record, until_us = readings[kind.name, name]
            definition = record.definition
            kind.check_question(definition, document)
            question = {"name": name, "question": document, "until_us": until_us}
            return ShardQuestion(stream=record.stream, operator=kind.name, question=question)

        replies = await self._questions.ask(read)
        assert definition is not None, "a question that was sent was read"
        return definition, replies

    def _running(self, kind: DocumentKind, name: str, readings: Readings) -> tuple[RegisteredOperator, int | None]:
        """Return an active operator, and the event time that its stream has reached.

        The time of the last heartbeat is stored in ``readings``, for all questions that are sent together.
        """
        record, declaration, times, readings["last_us"] = self._stores.registry.operator_with_times(kind.name, name)
        if record.state != "active":
            raise OperatorAway(f"the {kind.name} {name!r} is {record.state}, and only an active one answers questions")
        return record, reached_us(declaration, times)


def reached_us(declaration: StreamDeclaration, times: StreamTimes) -> int | None:
    """Return the event time up to which a stream is complete, or None before the first event.

    This is the greatest event time in any shard, less the lateness. For a derived stream, only ticks count. If the
    lateness is ``auto``, its largest permitted bound is subtracted.
    """
    times_us = (times.ticked_us,) if declaration.derived else (times.newest_us, times.ticked_us)
    newest_us = max((time_us for time_us in times_us if time_us is not None), default=None)
    if newest_us is None:
        return None
    lateness = declaration.lateness
    return newest_us - (lateness.at_most_us if isinstance(lateness, AutoLateness) else declaration.lateness_us or 0)
