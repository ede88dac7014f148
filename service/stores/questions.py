"""Answers of the shards to questions of the log, kept until they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import orjson

from service.stores.connection import PREFIX, Client
from shards import OutputRow

_LIFE_MS = 60_000


class QuestionStore:
    """Stores answers by question and shard, for ``life_ms`` after the last one came."""

    def __init__(self, client: Client, *, life_ms: int = _LIFE_MS) -> None:
        self._client = client
        self._life_ms = life_ms

    def keep(self, rows: Iterable[OutputRow]) -> None:
        """Store answers of shards; storing one again changes nothing."""
        pipe = self._client.pipeline(transaction=False)
        for row in rows:
            key = _key(orjson.loads(row.body)["question"])
            pipe.hset(key, str(row.shard), row.body)
            pipe.pexpire(key, self._life_ms)
        pipe.execute()

    def read(self, question: str, wanted: int) -> list[Mapping[str, Any]] | None:
        """The answers to a question by shard, once at least ``wanted`` have come; None until then."""
        key = _key(question)
        if self._client.hlen(key) < wanted:
            return None
        found = cast("dict[bytes, bytes]", self._client.hgetall(key))
        return [orjson.loads(found[shard]) for shard in sorted(found, key=int)]

    def forget(self, question: str) -> None:
        """Delete the answers to a question."""
        self._client.delete(_key(question))


def _key(question: str) -> str:
    return f"{PREFIX}question:{question}"
