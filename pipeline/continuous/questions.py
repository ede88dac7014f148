"""Questions to shards, which a task answers between two steps from the states in its memory.

A question names the newest entry of its shard's log at the time of asking. The shard answers once it has matched this
entry, so the answer covers everything that was acknowledged before. A task that has lost its lease without noticing
gives no outdated answer: if its state lacks the named entry, the question waits.

A question is removed when it is answered. If a task dies, the next owner of its shard answers the remaining questions.
If a question crashes its process, each later owner tries the question again until it expires, a few seconds after it
was asked (``ask.lua``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import orjson
import redis
import structlog

from pipeline.held_shards import HeldShards
from pipeline.sources.log_reading import START, text_of
from streams import Ask, ForestallError, RecordKind, answers_key, decode_control, position_order, questions_key

MOST_QUESTIONS = 100
"""Questions to a shard that are read at once."""

_WAITED_S = 30.0  # longest wait for entries; the client has given up by then
_LIFE_MS = 30_000

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A question, which its shard answers once the shard has matched the entry ``until``."""

    shard: int
    position: str
    fields: Mapping[bytes, bytes]
    until: str
    read_s: float = field(default_factory=time.monotonic)


class Questions:
    """The unanswered questions of users to the shards that a task owns."""

    def __init__(self, server: redis.Redis, shards: HeldShards) -> None:
        self._server = server
        self._shards = shards
        self._read: dict[int, str] = {}  # by shard: the newest question that was read
        self._waiting: list[_Question] = []

    def afters(self, held: Iterable[int]) -> dict[int, str]:
        """Return, for each owned shard, the position up to which questions are read. Forget the other shards."""
        self._read = {shard: self._read.get(shard, START) for shard in held}
        return self._read

    def take(self, shard: int, page: Iterable[tuple[bytes, Mapping[bytes, bytes]]]) -> None:
        """Add questions that were read for a shard. ``page`` has each question's position and its fields in Redis."""
        for position, fields in page:
            self._read[shard] = position.decode()
            until = text_of(fields, b"until") or START
            self._waiting.append(_Question(shard=shard, position=self._read[shard], fields=fields, until=until))

    def answer(self, at: Mapping[int, str]) -> bool:
        """Answer the questions whose shards have matched the required entry. Return False if no question was answered.

        ``at`` has the position of each owned shard. Questions to other shards, and questions that have waited too long,
        are dropped.
        """
        if not self._waiting:
            return False
        oldest = time.monotonic() - _WAITED_S
        due, self._waiting = _divided(
            at, [question for question in self._waiting if question.shard in at and question.read_s > oldest]
        )
        if not due:
            return False
        answers: dict[str, list[bytes]] = {}  # by client, so that few commands send them
        places: dict[int, list[str]] = {}
        for question in due:
            identity, body = self._answered(question, at[question.shard])
            answers.setdefault(answers_key(identity), []).append(body)
            places.setdefault(question.shard, []).append(question.position)
        pipe = self._server.pipeline(transaction=False)
        for key, bodies in answers.items():
            pipe.rpush(key, *bodies)
            pipe.pexpire(key, _LIFE_MS)
        for shard, positions in places.items():
            pipe.xdel(questions_key(shard), *positions)
        pipe.execute()
        return True

    def _answered(self, question: _Question, at: str) -> tuple[str, bytes]:
        stream, identity = text_of(question.fields, b"stream"), text_of(question.fields, b"id")
        try:
            ask = cast(Ask, decode_control(RecordKind.ASK, question.fields[b"body"]))
            return identity, orjson.dumps(self._shards.answer(question.shard, at, stream, ask))
        except ForestallError as error:
            reason = error.message
        # house: allow broad-except: whatever it is, a question must not stop its shard
        except Exception as error:
            log.exception("question-not-answered", shard=question.shard, stream=stream)
            reason = f"{type(error).__name__}: {error}"
        about = {"question": identity, "shard": question.shard, "position": at, "stream": stream}
        return identity, orjson.dumps({**about, "error": {"message": reason}})


def _divided(at: Mapping[int, str], questions: Sequence[_Question]) -> tuple[list[_Question], list[_Question]]:
    """Split questions in two: those whose shards have matched the entry ``until``, and those that still wait."""
    parts: tuple[list[_Question], list[_Question]] = [], []
    for question in questions:
        parts[position_order(question.until) > position_order(at[question.shard])].append(question)
    return parts
