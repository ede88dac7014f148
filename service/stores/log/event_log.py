"""The event log, to which batches of events are appended. ``docs/log-format.md`` describes the form of its entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import numpy as np
from redis.exceptions import ResponseError

from service.errors import FeedMisplaced, LogFull, RecordFormatError, RegistryContended, UnknownStream
from service.settings import Limits, TracingSettings
from service.stores.connection import PREFIX, Client, register
from service.stores.log.backlog import MATCHED_KEY, BacklogStore
from service.stores.log.dead_letters import DEAD_LETTERS_KEY, DeadLetter
from service.stores.log.event_ids import DIGEST_BYTES, DUPLICATES_KEY, EVENT_IDS_KEY, known_rows, packed
from service.stores.log.feeds import FeedStep
from service.stores.log.layout import LayoutStore
from service.stores.records import decode, encode
from service.stores.request_contexts import CONTEXTS_KEY, events_of, packed_context
from service.stores.results.recent import COUNTS_SUFFIX, SIZE_SUFFIX
from service.stores.routes import GONE, as_text, from_text
from streams import ROUTES_KEY, AttributePath, EventBatch, LogEntry, RecordKind, log_key

_PAGE_ENTRIES = 256
_AUTO_KEY_MS = 60_000
_ATTEMPTS = 10
_USUAL_LIMITS, _USUAL_TRACING = Limits(), TracingSettings()

_Entries: TypeAlias = "list[tuple[bytes, dict[bytes, bytes]]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A posted batch that is to be appended to the log.

    Attributes:
        answer: Answer to the request, as plain JSON. A repetition of the request gets the same answer.
        fingerprint: Digest of the batch, by which a different batch under the same idempotency key is detected.
        token: Unique token of this call, which prevents a second append if Redis' reply is lost.
        idempotency_key: The client's idempotency key, or None if every call is a new batch.
        step: Step of a feed if the batch is from a feed. It replaces ``idempotency_key`` and ``token``.
        keys: Attribute path of each further key of the stream, by the name of the key.
        context: Trace context of the request, or None if it is not traced.
        ids: Digest of each event's identity, or None for an event without identity. All digests are different. Empty if
            the stream does not drop repeated events.
        dropped: Number of events that are left out because they are repeated in the batch or already in the log.
        since_ms: Time of the stream's declaration, as in its record. If a stream of this name was declared at another
            time, nothing is appended to it, and its stored answers are ignored. None skips this check.
    """

    stream: str
    batch: EventBatch
    dead_letters: Sequence[DeadLetter]
    answer: Mapping[str, Any]
    fingerprint: str
    token: str
    idempotency_key: str | None = None
    step: FeedStep | None = None
    keys: Mapping[str, AttributePath] = field(default_factory=dict)
    context: str | None = None
    ids: Sequence[bytes | None] = ()
    dropped: int = 0
    since_ms: int | None = None

    def without(self, numbers: Sequence[int]) -> Submission:
        """Return the submission without repeated events. ``numbers`` identify these events (``known_rows``)."""
        known_events = set(known_rows(self.ids, numbers))
        rows = [row for row in range(len(self.batch)) if row not in known_events]
        dropped = self.dropped + len(known_events)
        return replace(
            self,
            batch=self.batch.take(np.array(rows, np.int64)),
            ids=[self.ids[row] for row in rows],
            dropped=dropped,
            answer={**self.answer, "accepted": len(rows), "duplicates": dropped},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The result of a submission.

    Attributes:
        positions: Position of the submission's last entry in each shard.
        earlier: Answer to an earlier submission of the batch, or None if the batch is new.
        fingerprint: Digest of the batch that was first appended under the idempotency key.
        dropped: Number of events that were left out.
    """

    positions: Mapping[int, str]
    earlier: Mapping[str, Any] | None
    fingerprint: str
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The events of a batch that become one entry of a shard. All are assigned to the shard by the same key.

    Attributes:
        route: Name of the further key by which events were assigned to shards, or empty for the correlation key.
        seen: Ids and times of the events, alternating, or empty if the request is not traced.
    """

    shard: int
    route: str
    body: bytes
    events: int
    seen: Sequence[str] = ()


class EventLog:
    """The event log, which consists of shards. ``shards`` is the number of shards with which a new log is created."""

    def __init__(
        self, client: Client, shards: int, limits: Limits = _USUAL_LIMITS, tracing: TracingSettings = _USUAL_TRACING
    ) -> None:
        self._client = client
        self._limits = limits
        self._tracing = tracing
        self._backlog = BacklogStore(client)
        self._append_events = register(client, "log/append_events")
        self.layout = LayoutStore(client, shards)
        self._routes: dict[str, tuple[str, ...]] = {}  # may be outdated, because the script checks them

    def shards(self) -> int:
        """Return the number of shards in the cached layout."""
        return self.layout.known().shards

    def keys(self) -> list[str]:
        return [log_key(shard) for shard in range(self.shards())]

    def routed(self) -> frozenset[str]:
        """Return the streams that have routes. A route is a further key by which an operator reads the stream."""
        fields = cast("dict[bytes, bytes]", self._client.hgetall(ROUTES_KEY))
        return frozenset(stream.decode() for stream, routes in fields.items() if routes not in (b"", GONE))

    def duplicates(self) -> dict[str, int]:
        """Return the number of events that were dropped as repetitions, by stream, if there are any."""
        fields = cast("dict[bytes, bytes]", self._client.hgetall(DUPLICATES_KEY))
        return {stream.decode(): int(count) for stream, count in sorted(fields.items())}

    def append_events(self, submission: Submission) -> Receipt:
        """Append a batch and its dead letters atomically, once per idempotency key or step of a feed.

        Each event is appended to the shard of its correlation key, and to the shard of each further key that operators
        use. Events whose ids the stream has already accepted are left out. The script makes this decision, so that only
        one of two simultaneous requests appends the same event.

        Nothing is appended if an error is raised.

        Raises:
            FeedMisplaced: The feed's mark is not at the start of the step.
            LogFull: The backlog would exceed a limit. This is not checked for a batch that was appended before.
            LogResharding: The log is being resharded.
            UnknownStream: The stream is not declared, or was declared again.
            RegistryContended: The routes or the known ids changed at each of several attempts.
        """
        for _ in range(_ATTEMPTS):
            parts, reply = self._send(submission)
            if reply[0] is not None:
                return _earlier_receipt(submission, reply[0])
            if len(reply) == 2:
                positions = {part.shard: position.decode() for part, position in zip(parts, reply[1], strict=True)}
                return Receipt(
                    positions=positions,
                    earlier=None,
                    fingerprint=submission.fingerprint,
                    dropped=submission.dropped,
                )
            obstacle, *details = reply[2]
            if obstacle == b"known":
                submission = submission.without(details[0])
            elif obstacle == b"gone" or (obstacle == b"routes" and details[0] == GONE):
                raise UnknownStream.named(submission.stream)
            elif obstacle == b"routes":
                self._routes[submission.stream] = from_text(details[0])
            else:
                raise self._refusal(*reply[2])
        raise RegistryContended(
            f"the routes of the stream {submission.stream!r}, or its known ids, are being changed; try again"
        )

    def _send(self, submission: Submission) -> tuple[Sequence[_Part], Any]:
        routes = self._routes.get(submission.stream, ())
        parts: list[_Part] = []

        def append(shards: int) -> Any:
            parts[:] = _parts(submission, routes, shards)
            return self._append(submission, parts, routes, shards)

        reply = self.layout.fitted(append)
        return parts, reply

    def _append(self, submission: Submission, parts: Sequence[_Part], routes: tuple[str, ...], shards: int) -> Any:
        key, life_ms = self._answer_key(submission)
        step = submission.step
        if step is None:
            since = {} if submission.since_ms is None else {"since": submission.since_ms}
            answer = encode(fingerprint=submission.fingerprint, answer=dict(submission.answer), **since)
        else:
            answer = step.after.to_bytes()
        return self._append_events(
            kept_answer=key,
            dead_letters=DEAD_LETTERS_KEY,
            dead_letter_size=DEAD_LETTERS_KEY + SIZE_SUFFIX,
            dead_letter_counts=DEAD_LETTERS_KEY + COUNTS_SUFFIX,
            matched=MATCHED_KEY,
            contexts=CONTEXTS_KEY + submission.stream,
            event_ids=EVENT_IDS_KEY + submission.stream,
            duplicates=DUPLICATES_KEY,
            shards=[log_key(part.shard) for part in parts],
            answer=answer,
            answer_ms=life_ms,
            stream=submission.stream,
            dead_letters_kept=self._limits.recent_kept,
            feed_mark=b"" if step is None else step.before.to_bytes(),
            most_events=self._limits.max_backlog_events,
            most_bytes=self._limits.max_log_bytes,
            known_routes=as_text(routes),
            newest_us=int(submission.batch.time_us.max()) if len(submission.batch) else b"",
            shard_count=shards,
            context=self._context_argument(submission, parts),
            digests=packed(submission.ids),
            digest_bytes=DIGEST_BYTES,
            ids_kept=self._limits.event_ids_kept,
            ids_ms=self._limits.event_id_life_s * 1_000,
            dropped=submission.dropped,
            since="*" if submission.since_ms is None else submission.since_ms,
            rest=[
                *(argument for part in parts for argument in (part.body, part.events, part.route)),
                *(part for letter in submission.dead_letters for part in (letter.record, letter.counter)),
            ],
        )

    def _context_argument(self, submission: Submission, parts: Sequence[_Part]) -> bytes:
        if submission.context is None or not parts:
            return b""
        return packed_context(submission.context, [(part.shard, part.seen) for part in parts], self._tracing)

    def _refusal(self, unit: bytes, total: int, waiting: int) -> LogFull:
        limits = {b"events": self._limits.max_backlog_events, b"bytes": self._limits.max_log_bytes}
        return self._backlog.refusal(unit.decode(), total, waiting, limits[unit])

    def _answer_key(self, submission: Submission) -> tuple[str, int]:
        if submission.step is not None:
            return submission.step.key, 0
        if submission.idempotency_key is None:
            return f"{PREFIX}submission:{submission.token}", _AUTO_KEY_MS
        return (
            f"{PREFIX}idempotency:{submission.stream}:{submission.idempotency_key}",
            self._limits.idempotency_life_s * 1_000,
        )

    def read_range(self, shard: int, *, after: str = "0-0", until: str = "+") -> Iterator[LogEntry]:
        """Yield the entries of a shard after the position ``after`` up to the position ``until``, oldest first."""
        while page := self._read_page(shard, after, until):
            yield from page
            after = page[-1].position

    def newest_first(self, shard: int, since_ms: int = 0) -> Iterator[LogEntry]:
        """Yield the entries of a shard, newest first, back to the time ``since_ms`` by the clock of Redis."""
        until = "+"
        while page := cast(_Entries, self._client.xrevrange(log_key(shard), until, str(since_ms), count=_PAGE_ENTRIES)):
            for position, fields in page:
                yield log_entry(position, fields)
            until = "(" + page[-1][0].decode()

    def is_whole(self, shard: int) -> bool:
        """Return whether a shard still has all its entries. If the server does not report this, return False."""
        try:
            facts = self._client.xinfo_stream(log_key(shard))
        except ResponseError:  # the shard has no entries yet
            return True
        return bool(facts.get("entries-added") == facts["length"])

    def _read_page(self, shard: int, after: str, until: str) -> list[LogEntry]:
        rows = cast(_Entries, self._client.xrange(log_key(shard), f"({after}", until, count=_PAGE_ENTRIES))
        return [log_entry(position, fields) for position, fields in rows]


def log_entry(position: bytes, fields: Mapping[bytes, bytes]) -> LogEntry:
    """Decode an entry of a shard from its position and its fields in Redis."""
    return LogEntry(
        position=position.decode(),
        kind=RecordKind(fields[b"kind"].decode()),
        stream=fields[b"stream"].decode(),
        body=fields[b"body"],
        route=fields.get(b"route", b"").decode(),
    )


def _parts(submission: Submission, routes: tuple[str, ...], shards: int) -> list[_Part]:
    """Divide a submission into one part for each key and shard. The parts of the correlation key are first."""
    if undeclared := sorted(set(routes) - set(submission.keys)):
        raise RecordFormatError(
            f"patterns of the stream {submission.stream!r} use the further keys {', '.join(undeclared)}, which its "
            "declaration does not have"
        )
    batches = {"": submission.batch, **{name: submission.batch.keyed_by(submission.keys[name]) for name in routes}}
    return [
        _Part(
            shard=shard,
            route=route,
            body=part.to_bytes(),
            events=len(part),
            seen=() if route or submission.context is None else events_of(part),
        )
        for route, batch in batches.items()
        for shard, part in batch.split_by_shard(shards).items()
    ]


def _earlier_receipt(submission: Submission, body: bytes) -> Receipt:
    if submission.step is not None:
        _require_taken(submission.step, body)
        return Receipt(positions={}, earlier=submission.answer, fingerprint=submission.fingerprint)
    stored = decode(body, "a batch's answer")
    return Receipt(positions={}, earlier=stored["answer"], fingerprint=stored["fingerprint"])


def _require_taken(step: FeedStep, body: bytes) -> None:
    """Raise ``FeedMisplaced`` unless a feed's step was appended already. ``body`` is the stored mark of the feed."""
    if body != step.after.to_bytes():
        raise FeedMisplaced(
            f"feed {step.feed!r} should continue at row {step.before.row} of its micro-batch {step.before.batch}, "
            f"but the log has it elsewhere ({body.decode() or 'nowhere'}): another process runs a feed of that "
            f"name, or the log was restored to an earlier state; nothing was appended",
            feed=step.feed,
        )
