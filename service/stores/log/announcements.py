"""Announcements and questions, which are control records that register nothing.

An announcement reports event time or the end of traces to the shards. A question is answered by the shards. Their
answers are stored until the process that sent the question reads them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import orjson

from service.stores.connection import PREFIX, Client, register
from service.stores.log.event_log import EventLog
from service.stores.routes import require_not_removed
from shards import OutputRow
from streams import Ask, ControlRecord, ScriptInput, answers_key, encode_control, key_hash, log_key, shard_of

_TOKEN_MS = 60_000
_LIFE_MS = 60_000  # life of answers
_PAGE = 100


class Announcements:
    """Sends announcements and questions to the shards of a log."""

    def __init__(self, client: Client, log: EventLog) -> None:
        self._log = log
        self._append = register(client, "log/append_control")
        self._ask = register(client, "log/ask")

    def append(self, stream: str, record: ControlRecord, key: str | None = None) -> int:
        """Append a record to every shard, or only to the shard of ``key``. Return the number of shards that get it."""
        token = f"{PREFIX}announcement:{uuid.uuid4().hex}"
        body = encode_control(record)
        _, reached = self._call_script(
            self._append, stream, key, {"call": token, "call_ms": _TOKEN_MS, "kind": record.KIND.value, "body": body}
        )
        return reached

    def ask(self, stream: str, questions: Sequence[Ask], life_s: float, key: str | None = None) -> int:
        """Send questions to every shard, or only to the shard of ``key``. Return the number of shards that will answer.

        If continuous tasks run, they answer between two steps, and drop questions that are older than ``life_s``
        seconds. Otherwise the questions are appended to the log, and the pipeline answers them.
        """
        arguments: Mapping[str, ScriptInput] = {
            "life_ms": round(1_000 * life_s),
            "asked": [part for question in questions for part in (question.id, encode_control(question))],
        }
        is_accepted, reached = self._call_script(self._ask, stream, key, arguments)
        return reached if is_accepted else [self.append(stream, question, key) for question in questions][-1]

    def _call_script(
        self, script: Callable[..., Any], stream: str, key: str | None, arguments: Mapping[str, ScriptInput]
    ) -> tuple[Any, int]:
        reached = 0

        def send(shards: int) -> Any:
            nonlocal reached
            targets = range(shards) if key is None else [shard_of(key_hash(key), shards)]
            reached = len(targets)
            return script(
                shards=[log_key(shard) for shard in targets],
                stream=stream,
                shard_count=shards,
                **arguments,
            )

        reply = self._log.layout.fitted(send)
        require_not_removed(stream, reply)
        return reply, reached


class QuestionStore:
    """Stores answers to questions until a process reads them, for at most ``life_ms`` milliseconds.

    An answer may be stored twice, for example after a crash of the pipeline.
    """

    def __init__(self, client: Client, *, life_ms: int = _LIFE_MS) -> None:
        self._client = client
        self._life_ms = life_ms

    def keep(self, rows: Iterable[OutputRow]) -> None:
        """Store the pipeline's answers to questions that were appended to the log. ``rows`` are the answers."""
        pipe = self._client.pipeline(transaction=False)
        for row in rows:
            key = answers_key(orjson.loads(row.body)["question"])
            pipe.rpush(key, row.body)
            pipe.pexpire(key, self._life_ms)
        pipe.execute()

    def take(self, question: str, wait_s: float) -> list[Mapping[str, Any]]:
        """Remove and return the stored answers to a question. If there are none, wait up to ``wait_s`` seconds."""
        reply = cast(
            "tuple[bytes, list[bytes]] | None",
            self._client.blmpop(wait_s, 1, answers_key(question), direction="LEFT", count=_PAGE),
        )
        return [] if reply is None else [orjson.loads(body) for body in reply[1]]
