"""Answers of the shards to questions, on their way to the process that asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import orjson

from service.stores.connection import Client
from shards import OutputRow
from streams import answers_key

_LIFE_MS = 60_000
_PAGE = 100


class QuestionStore:
    """Keeps answers until the asker takes them, for ``life_ms`` at most; an answer may come twice."""

    def __init__(self, client: Client, *, life_ms: int = _LIFE_MS) -> None:
        self._client = client
        self._life_ms = life_ms

    def keep(self, rows: Iterable[OutputRow]) -> None:
        """Store answers that came through the log."""
        pipe = self._client.pipeline(transaction=False)
        for row in rows:
            key = answers_key(orjson.loads(row.body)["question"])
            pipe.rpush(key, row.body)
            pipe.pexpire(key, self._life_ms)
        pipe.execute()

    def take(self, question: str, wait_s: float) -> list[Mapping[str, Any]]:
        """The answers to all questions of the asker of a question, taken once; waits for the first."""
        found = cast(
            "tuple[bytes, list[bytes]] | None",
            self._client.blmpop(wait_s, 1, answers_key(question), direction="LEFT", count=_PAGE),
        )
        return [] if found is None else [orjson.loads(body) for body in found[1]]
