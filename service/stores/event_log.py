"""Appending to the event log. The form of the log is described in ``docs/log-format.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from service.errors import RecordFormatError
from service.stores.connection import PREFIX, Client, register
from service.stores.dead_letters import DeadLetter, DeadLetterStore
from service.stores.records import FORMAT_VERSION, decode, encode
from streams import EventBatch, LogEntry, RecordKind, log_key

LAYOUT_KEY = PREFIX + "layout"

_PAGE_ENTRIES = 256
_AUTO_KEY_MS = 60_000

# KEYS: the answer's key, dead letters, their counters, then the shards that get a part.
# ARGV: answer, its life in ms, stream, number of dead letters, dead letters kept, two arguments per dead letter
# (record, counter), then one body per shard.
_APPEND_EVENTS = """
local earlier = redis.call('GET', KEYS[1])
if earlier then return {earlier} end
local at = 6
for _ = 1, tonumber(ARGV[4]) do
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[5], '*', 'record', ARGV[at])
  redis.call('HINCRBY', KEYS[3], ARGV[at + 1], 1)
  at = at + 2
end
local positions = {}
for i = 4, #KEYS do
  positions[i - 3] = redis.call('XADD', KEYS[i], '*', 'kind', 'events', 'stream', ARGV[3], 'body', ARGV[at + i - 4])
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {false, positions}
"""

_OPEN = """
redis.call('HSETNX', KEYS[1], 'format', ARGV[1])
redis.call('HSETNX', KEYS[1], 'shards', ARGV[2])
return redis.call('HMGET', KEYS[1], 'format', 'shards')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One posted batch on its way into the log.

    Attributes:
        stream: Where it belongs.
        batch: The good events, in their order; may be empty.
        dead_letters: What became of the others.
        answer: Plain JSON that a repetition of the batch gets again.
        idempotency_key: The client's name for the batch; None makes every call a new batch.
        fingerprint: Tells whether a repetition is the same batch.
        token: Unique to this call; keeps it from being taken twice when Redis' reply is lost.
    """

    stream: str
    batch: EventBatch
    dead_letters: Sequence[DeadLetter]
    answer: Mapping[str, Any]
    fingerprint: str
    token: str
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of a submission.

    Attributes:
        positions: Shard to position, for the parts that were appended now.
        earlier: The stored answer when the batch had been taken before, else None.
        fingerprint: That of the batch that was taken under the key.
    """

    positions: Mapping[int, str]
    earlier: Mapping[str, Any] | None
    fingerprint: str


class EventLog:
    """The shards of the log.

    Args:
        client: Where they are.
        shards: Their number when the log is new; an existing log keeps its own.
        answer_life_s: How long an idempotency key is remembered.
        dead_letters_kept: About so many dead letters are kept.
    """

    def __init__(
        self, client: Client, shards: int, *, answer_life_s: int = 86_400, dead_letters_kept: int = 10_000
    ) -> None:
        self._client = client
        self._answer_life_ms = answer_life_s * 1_000
        self._dead_letters_kept = dead_letters_kept
        self._append_events = register(client, _APPEND_EVENTS)
        self._open = register(client, _OPEN)
        self._wanted_shards = shards
        self._shards: int | None = None

    def shards(self) -> int:
        """Number of shards of this log, for good.

        Raises:
            RecordFormatError: The log was written in a format that this release does not know.
            StoreUnavailable: Redis does not answer.
        """
        if self._shards is None:
            found, shards = self._open([LAYOUT_KEY], [FORMAT_VERSION, self._wanted_shards])
            if int(found) != FORMAT_VERSION:
                raise RecordFormatError(
                    f"the event log has format {int(found)}; this release reads {FORMAT_VERSION}", found=int(found)
                )
            self._shards = int(shards)
        return self._shards

    def keys(self) -> list[str]:
        """The Redis key of every shard, in order."""
        return [log_key(shard) for shard in range(self.shards())]

    def append_events(self, submission: Submission) -> Receipt:
        """Append a batch and its dead letters, all or nothing, once per idempotency key."""
        parts = submission.batch.split_by_shard(self.shards())
        key, life_ms = self._answer_key(submission)
        answer = encode(fingerprint=submission.fingerprint, answer=dict(submission.answer))
        dead_letters = [part for letter in submission.dead_letters for part in (letter.record, letter.counter)]
        reply = self._append_events(
            [key, DeadLetterStore.key, DeadLetterStore.counts_key(), *(log_key(shard) for shard in parts)],
            [
                answer,
                life_ms,
                submission.stream,
                len(submission.dead_letters),
                self._dead_letters_kept,
                *dead_letters,
                *(part.to_bytes() for part in parts.values()),
            ],
        )
        if reply[0] is not None:
            stored = decode(reply[0], "a batch's answer")
            return Receipt(positions={}, earlier=stored["answer"], fingerprint=stored["fingerprint"])
        positions = {shard: position.decode() for shard, position in zip(parts, reply[1], strict=True)}
        return Receipt(positions=positions, earlier=None, fingerprint=submission.fingerprint)

    def _answer_key(self, submission: Submission) -> tuple[str, int]:
        if submission.idempotency_key is None:
            return f"{PREFIX}submission:{submission.token}", _AUTO_KEY_MS
        return f"{PREFIX}idempotency:{submission.stream}:{submission.idempotency_key}", self._answer_life_ms

    def read_range(self, shard: int, *, after: str = "0-0", until: str = "+") -> Iterator[LogEntry]:
        """Entries of a shard behind ``after`` up to ``until``, oldest first."""
        while page := self._read_page(shard, after, until):
            yield from page
            after = page[-1].position

    def _read_page(self, shard: int, after: str, until: str) -> list[LogEntry]:
        found = cast(
            "list[tuple[bytes, dict[bytes, bytes]]]",
            self._client.xrange(log_key(shard), min=f"({after}", max=until, count=_PAGE_ENTRIES),
        )
        return [
            LogEntry(
                position=position.decode(),
                kind=RecordKind(fields[b"kind"].decode()),
                stream=fields[b"stream"].decode(),
                body=fields[b"body"],
            )
            for position, fields in found
        ]
