"""Appending to the event log. The form of the log is described in ``docs/log-format.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from service.errors import FeedMisplaced, LogFull, RecordFormatError, RegistryContended
from service.stores.backlog import APPENDED_KEY, COUNTING, MATCHED_KEY, BacklogStore
from service.stores.connection import PREFIX, Client, register
from service.stores.dead_letters import DeadLetter, DeadLetterStore
from service.stores.event_ids import DUPLICATES_KEY, EVENT_IDS_KEY, KNOWING, IdLimits, known_rows, packed
from service.stores.feeds import FeedStep
from service.stores.layout import FITTING, LayoutStore
from service.stores.records import decode, encode
from service.stores.request_contexts import CONTEXTS_KEY, REMEMBERING, ContextLimits, events_of
from service.stores.routes import ROUTES_KEY, as_text, from_text
from service.stores.stream_times import STREAM_TIMES_KEY, TIMING
from streams import LAYOUT_KEY, EventBatch, LogEntry, RecordKind, log_key

_PAGE_ENTRIES = 256
_AUTO_KEY_MS = 60_000
_ATTEMPTS = 10

# KEYS: the key of the answer (for a feed, of its mark), dead letters, their counters, counters of what was appended and
# of what is matched, the routes in use, the times of streams, the layout, where contexts of requests are remembered,
# the ids of the stream's events, counters of those that came again, then the shard of each part.
# ARGV: answer, its life in ms, stream, number of dead letters, dead letters kept, where a feed's mark must be or '',
# most events and bytes that may wait, the routes that the parts are for, the newest time of the events or '', the
# number of shards that the parts are for, what is to be remembered of the request's context or '', digests of the
# events' ids, how many are to be known and for how long in ms, how many events were left out, two arguments per dead
# letter (record, counter), then of each part the body, the number of its events and its route.
# Returns the earlier answer; or false and the positions; or false, nothing, and what is full or which routes are used
# or which events were taken before;
# or what ``misfit`` says.
_APPEND_EVENTS = (
    COUNTING
    + TIMING
    + FITTING
    + REMEMBERING
    + KNOWING
    + """
local earlier = redis.call('GET', KEYS[1])
if ARGV[6] ~= '' then
  if earlier ~= ARGV[6] then return {earlier or ''} end
elseif earlier then
  return {earlier}
end
local unfit = misfit(KEYS[8], ARGV[11])
if unfit then return unfit end
local routes = redis.call('HGET', KEYS[6], ARGV[3]) or ''
if routes ~= ARGV[9] then return {false, {}, {'routes', routes}} end
local ids = ids_of(ARGV[13])
local known = known_ids(KEYS[10], ids)
if #known > 0 then return {false, {}, {'known', known}} end
local first = 17 + 2 * tonumber(ARGV[4])
local events, bytes = 0, 0
for i = 12, #KEYS do
  local at = first + 3 * (i - 12)
  events, bytes = events + tonumber(ARGV[at + 1]), bytes + #ARGV[at]
end
local full = events > 0 and limited(KEYS[4], KEYS[5], events, bytes, tonumber(ARGV[7]), tonumber(ARGV[8]))
if full then return {false, {}, full} end
local at = 17
for _ = 1, tonumber(ARGV[4]) do
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[5], '*', 'record', ARGV[at])
  redis.call('HINCRBY', KEYS[3], ARGV[at + 1], 1)
  at = at + 2
end
local positions = {}
for i = 12, #KEYS do
  local upto = counted(KEYS[4], string.match(KEYS[i], '%d+$'), tonumber(ARGV[at + 1]), #ARGV[at])
  local entry = {'kind', 'events', 'stream', ARGV[3], 'body', ARGV[at], 'upto', upto}
  if ARGV[at + 2] ~= '' then entry[9], entry[10] = 'route', ARGV[at + 2] end
  positions[i - 11] = redis.call('XADD', KEYS[i], '*', unpack(entry))
  at = at + 3
end
know_ids(KEYS[10], ids, tonumber(ARGV[14]), ARGV[15])
if ARGV[16] ~= '0' then redis.call('HINCRBY', KEYS[11], ARGV[3], ARGV[16]) end
if ARGV[10] ~= '' then timed(KEYS[7], ARGV[3], ARGV[10]) end
if ARGV[12] ~= '' then remember(KEYS[9], cjson.decode(ARGV[12]), positions) end
if ARGV[6] ~= '' then redis.call('SET', KEYS[1], ARGV[1]) else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return {false, positions}
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """How the log is bounded.

    Attributes:
        answer_life_s: How long an idempotency key is remembered.
        dead_letters_kept: About so many dead letters are kept.
        max_backlog_events: So many events may wait to be matched.
        max_log_bytes: So many bytes of them may.
        contexts: How contexts of requests are remembered.
        ids: How long ids of events are known.
    """

    answer_life_s: int = 86_400
    dead_letters_kept: int = 10_000
    max_backlog_events: int = 5_000_000
    max_log_bytes: int = 4 * 1024**3
    contexts: ContextLimits = field(default_factory=ContextLimits)
    ids: IdLimits = field(default_factory=IdLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One posted batch on its way into the log.

    Attributes:
        stream: Where it belongs.
        batch: The good events, in their order; may be empty.
        dead_letters: Of the events that were rejected.
        answer: Plain JSON that a repetition of the batch gets again.
        idempotency_key: The client's name for the batch; None makes every call a new batch.
        keys: The stream's further keys: paths of attributes by name.
        fingerprint: Tells whether a repetition is the same batch.
        token: Unique to this call; keeps it from being taken twice when Redis' reply is lost.
        step: The step of a feed that this batch is; takes the place of the key and the token.
        context: The ``traceparent`` of the request, if it is traced.
        ids: For each event of the batch the digest of its identity, no two alike, or None where it has none; empty: the
            stream takes events as often as they come.
        dropped: Events that were left out, as they are in the batch or in the log already.
    """

    stream: str
    batch: EventBatch
    dead_letters: Sequence[DeadLetter]
    answer: Mapping[str, Any]
    fingerprint: str
    token: str
    idempotency_key: str | None = None
    step: FeedStep | None = None
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    context: str | None = None
    ids: Sequence[bytes | None] = ()
    dropped: int = 0

    def without(self, numbers: Sequence[int]) -> Submission:
        """The submission without the events of some digests, by their numbers among those that are there."""
        gone = set(known_rows(self.ids, numbers))
        rest = [row for row in range(len(self.batch)) if row not in gone]
        dropped = self.dropped + len(gone)
        return replace(
            self,
            batch=self.batch.take(np.array(rest, np.int64)),
            ids=[self.ids[row] for row in rest],
            dropped=dropped,
            answer={**self.answer, "accepted": len(rest), "duplicates": dropped},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The result of a submission.

    Attributes:
        positions: Shard to position of its last part, for the parts that were appended now.
        earlier: The stored answer when the batch had been taken before, else None.
        fingerprint: That of the batch that was taken under the key.
        dropped: Events that were left out of those that were appended now.
    """

    positions: Mapping[int, str]
    earlier: Mapping[str, Any] | None
    fingerprint: str
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What a shard gets of a batch by one key.

    Attributes:
        seen: What is remembered of its events, where the request is traced.
    """

    shard: int
    route: str
    body: bytes
    events: int
    seen: Sequence[str] = ()


class EventLog:
    """The shards of the log.

    Args:
        client: Where they are.
        shards: Their number when the log is new; an existing log keeps its own.
        limits: How it is bounded.

    Attributes:
        layout: How many shards there are.
    """

    def __init__(self, client: Client, shards: int, limits: LogLimits = LogLimits()) -> None:
        self._client = client
        self._limits = limits
        self._backlog = BacklogStore(client)
        self._append_events = register(client, _APPEND_EVENTS)
        self.layout = LayoutStore(client, shards)
        self._routes: dict[str, tuple[str, ...]] = {}  # as far as known here; the script knows better

    def shards(self) -> int:
        """Number of shards of this log, as far as this process knows: ``layout`` knows better.

        Raises:
            RecordFormatError: The log was written in a format that this release does not know.
            StoreUnavailable: Redis does not answer.
        """
        return self.layout.known().shards

    def keys(self) -> list[str]:
        """The Redis key of every shard, in order."""
        return [log_key(shard) for shard in range(self.shards())]

    def append_events(self, submission: Submission) -> Receipt:
        """Append a batch and its dead letters, all or nothing, once per idempotency key or step of a feed.

        Events go to the shard of their correlation key, and once more for each route that patterns use to the shard of
        the route's key.

        Events whose ids the stream has taken are left out. That is decided in the step that appends the others, so of
        two requests with the same event one has it.

        Raises:
            FeedMisplaced: The feed is not where the step begins.
            LogFull: Too much waits to be matched. Nothing was taken; a batch that had been taken is never refused.
            LogResharding: The log is being divided anew. Nothing was taken.
            RegistryContended: The routes in use keep changing.
        """
        for _ in range(_ATTEMPTS):
            parts, reply = self._sent(submission)
            if reply[0] is not None:
                return _taken_before(submission, reply[0])
            if len(reply) == 2:
                positions = {part.shard: position.decode() for part, position in zip(parts, reply[1], strict=True)}
                return Receipt(
                    positions=positions,
                    earlier=None,
                    fingerprint=submission.fingerprint,
                    dropped=submission.dropped,
                )
            what, *found = reply[2]
            if what == b"known":
                submission = submission.without(found[0])
            elif what == b"routes":
                self._routes[submission.stream] = from_text(found[0])
            else:
                raise self._refusal(*reply[2])
        raise RegistryContended(
            f"the routes of the stream {submission.stream!r}, or the ids that it knows, keep being changed; try again"
        )

    def _sent(self, submission: Submission) -> tuple[Sequence[_Part], Any]:
        """The parts of a submission, and what the script says to them."""
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
            answer = encode(fingerprint=submission.fingerprint, answer=dict(submission.answer))
        else:
            answer = step.after.to_bytes()
        dead_letters = [part for letter in submission.dead_letters for part in (letter.record, letter.counter)]
        return self._append_events(
            [
                key,
                DeadLetterStore.key,
                DeadLetterStore.counts_key(),
                APPENDED_KEY,
                MATCHED_KEY,
                ROUTES_KEY,
                STREAM_TIMES_KEY,
                LAYOUT_KEY,
                CONTEXTS_KEY + submission.stream,
                EVENT_IDS_KEY + submission.stream,
                DUPLICATES_KEY,
                *(log_key(part.shard) for part in parts),
            ],
            [
                answer,
                life_ms,
                submission.stream,
                len(submission.dead_letters),
                self._limits.dead_letters_kept,
                b"" if step is None else step.before.to_bytes(),
                self._limits.max_backlog_events,
                self._limits.max_log_bytes,
                as_text(routes),
                int(submission.batch.time_us.max()) if len(submission.batch) else b"",
                shards,
                self._remembered(submission, parts),
                packed(submission.ids),
                self._limits.ids.kept,
                self._limits.ids.life_s * 1_000,
                submission.dropped,
                *dead_letters,
                *(argument for part in parts for argument in (part.body, part.events, part.route)),
            ],
        )

    def _remembered(self, submission: Submission, parts: Sequence[_Part]) -> bytes:
        """The context of the request and its events, as the script takes them; empty for most requests."""
        if submission.context is None or not parts:
            return b""
        return self._limits.contexts.packed(submission.context, [(part.shard, part.seen) for part in parts])

    def _refusal(self, what: bytes, wanted: int, waiting: int) -> LogFull:
        limits = {b"events": self._limits.max_backlog_events, b"bytes": self._limits.max_log_bytes}
        return self._backlog.refusal(what.decode(), wanted, waiting, limits[what])

    def _answer_key(self, submission: Submission) -> tuple[str, int]:
        if submission.step is not None:
            return submission.step.key, 0
        if submission.idempotency_key is None:
            return f"{PREFIX}submission:{submission.token}", _AUTO_KEY_MS
        return (
            f"{PREFIX}idempotency:{submission.stream}:{submission.idempotency_key}",
            self._limits.answer_life_s * 1_000,
        )

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
                route=fields.get(b"route", b"").decode(),
            )
            for position, fields in found
        ]


def _parts(submission: Submission, routes: tuple[str, ...], shards: int) -> list[_Part]:
    """What each shard gets: first by correlation key, then by the keys of the routes."""
    if strangers := sorted(set(routes) - set(submission.keys)):
        raise RecordFormatError(
            f"patterns of the stream {submission.stream!r} use the further keys {', '.join(strangers)}, which its "
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


def _taken_before(submission: Submission, found: bytes) -> Receipt:
    """The receipt of a batch that had been taken already."""
    if submission.step is not None:
        _require_taken(submission.step, found)
        return Receipt(positions={}, earlier=submission.answer, fingerprint=submission.fingerprint)
    stored = decode(found, "a batch's answer")
    return Receipt(positions={}, earlier=stored["answer"], fingerprint=stored["fingerprint"])


def _require_taken(step: FeedStep, found: bytes) -> None:
    """Check that a feed is behind a step already: Redis' reply was lost, and the client sent the step again."""
    if found != step.after.to_bytes():
        raise FeedMisplaced(
            f"feed {step.feed!r} was to go on at row {step.before.row} of its micro-batch {step.before.batch}, and the "
            f"log has it elsewhere ({found.decode() or 'nowhere'}): another process feeds under that name, or the log "
            "was put back to an earlier state; nothing was appended",
            feed=step.feed,
        )
