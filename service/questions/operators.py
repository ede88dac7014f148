"""Questions to operators at any time, such as the groups of an aggregate: all shards answer, and one answer is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.questions.asking import Questions
from service.questions.errors import OperatorAway
from service.runtime import Stores
from service.stores import RegisteredOperator, StreamTimes
from shards import DocumentKind
from streams import AutoLateness, StreamDeclaration


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorQuestion:
    """A question that an operator can answer.

    Attributes:
        document: The question.
        until_us: How far the time of the operator's stream had come, which not every shard knows; None: it has none.
    """

    kind: DocumentKind
    record: RegisteredOperator
    document: Mapping[str, Any]
    until_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAnswer:
    """An answer: the position of each shard's log as of which it is exact, and the members of the kind."""

    positions: Mapping[int, str]
    members: Mapping[str, Any]


class OperatorQuestions:
    """Asks operators of kinds that answer questions."""

    def __init__(self, stores: Stores, questions: Questions) -> None:
        self._stores = stores
        self._questions = questions

    def checked(self, kind: DocumentKind, name: str, document: Mapping[str, Any]) -> OperatorQuestion:
        """The question that a document asks of an operator.

        Raises:
            OperatorRefused: The operator cannot answer it; ``field`` is the member.
            OperatorAway: The operator does not run.
        """
        registry = self._stores.registry
        record = registry.operators(kind.name).get(name)
        if record.state != "active":
            raise OperatorAway(f"the {kind.name} {name!r} is {record.state}, and only an active one answers questions")
        kind.check_question(record.definition, document)
        until_us = reached_us(registry.stream(record.stream), self._stores.stream_times.of(record.stream))
        return OperatorQuestion(kind=kind, record=record, document=document, until_us=until_us)

    async def ask(self, asked: OperatorQuestion) -> OperatorAnswer:
        """Ask all shards; errors as ``Questions.ask``."""
        record, kind = asked.record, asked.kind
        question = {"name": record.name, "question": asked.document, "until_us": asked.until_us}
        found = await self._questions.ask(record.stream, kind.name, question)
        members = kind.answer_of(record.definition, asked.document, [one["answer"] for one in found])
        return OperatorAnswer(positions={one["shard"]: one["position"] for one in found}, members=members)


def reached_us(declaration: StreamDeclaration, times: StreamTimes) -> int | None:
    """The time that a stream has reached in the shard that is furthest; None before the first event.

    A derived stream is as far as its newest tick. A measured lateness counts with its largest bound.
    """
    known = (times.ticked_us,) if declaration.derived else (times.newest_us, times.ticked_us)
    newest_us = max((one for one in known if one is not None), default=None)
    if newest_us is None:
        return None
    lateness = declaration.lateness
    return newest_us - (lateness.at_most_us if isinstance(lateness, AutoLateness) else declaration.lateness_us or 0)
