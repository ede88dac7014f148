"""Questions to operators at any time, such as the groups of an aggregate: all shards answer, and one answer is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.questions.asking import Questions
from service.questions.errors import OperatorAway
from service.runtime import Stores
from service.stores import RegisteredOperator
from shards import DocumentKind


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

    def checked(self, kind: DocumentKind, name: str, question: Mapping[str, Any]) -> RegisteredOperator:
        """The operator of a question that it can answer.

        Raises:
            OperatorRefused: It cannot answer the question; ``field`` is the member.
            OperatorAway: It does not run.
        """
        record = self._stores.registry.operators(kind.name).get(name)
        if record.state != "active":
            raise OperatorAway(f"the {kind.name} {name!r} is {record.state}, and only an active one answers questions")
        kind.check_question(record.definition, question)
        return record

    async def ask(self, kind: DocumentKind, record: RegisteredOperator, question: Mapping[str, Any]) -> OperatorAnswer:
        """Ask all shards; errors as ``Questions.ask``."""
        asked = {"name": record.name, "question": question}
        found = await self._questions.ask(record.stream, kind.name, asked)
        members = kind.answer_of(record.definition, question, [one["answer"] for one in found])
        return OperatorAnswer(positions={one["shard"]: one["position"] for one in found}, members=members)
