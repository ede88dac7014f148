"""Intake of posted events. Valid events are appended to the log, and the others become dead letters with a reason."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any, Literal

import orjson

from service.errors import BatchTooLarge, IdempotencyKeyReused, InvalidIdempotencyKey, StreamDerived
from service.intake.event_schemas import EventSchema, StepBudget
from service.intake.identities import without_repetitions
from service.settings import Limits
from service.stores import DeadLetter, EventLog, FeedStep, Receipt, Registry, StreamRecord, Submission
from streams import (
    LATEST_US,
    Clock,
    Event,
    EventAhead,
    EventBatch,
    EventRejected,
    StreamDeclaration,
    check_extent,
    format_time,
    parse_cloudevent,
    parse_columns,
    parse_each,
    parse_plain,
)

EventShape = Literal["cloudevents", "any"]

_KEPT_CHARS = 32_000
_LONGEST_KEY = 200
_DEEPEST = 100
_PER_US = 16  # arrival numbers per microsecond
_MOST_WRITTEN_BITS = 10_000  # Python writes at most 4,300 decimal digits of an integer


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedEvent:
    """An event that was not accepted. ``index`` is its position in the request, from 0."""

    index: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A row of a feed from which no event could be read.

    ``detail`` is the reason, and ``text`` is the text of the row for its dead letter.
    """

    detail: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPart:
    """The data that a feed passes to the intake together with rows.

    ``step`` advances the feed's mark in the log. ``origins`` has the origin of each row for the row's dead letter.
    """

    step: FeedStep
    origins: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeReport:
    """The result of a request to append events.

    If an earlier request has already appended the batch, ``is_duplicate`` is set and this is the result of that
    request. ``duplicates`` is the number of events that were dropped because the stream already had them.
    """

    accepted: int
    rejected: tuple[RejectedEvent, ...]
    is_duplicate: bool
    duplicates: int = 0


@dataclass(frozen=True, slots=True)
class _Letters:
    """The members that all dead letters of a batch have in common."""

    stream: str
    token: str
    shape: EventShape


@dataclass(frozen=True, slots=True)
class _Schemas:
    """The compiled schemas of a stream by event type, each with its version.

    ``version`` is the number of schema changes of the whole stream. It is read before the schemas, so a schema may be
    newer. If the stream is deleted and declared again, the number starts again. ``since_ms``, the time of the stream's
    declaration, distinguishes the two streams. ``most_steps`` limits the total steps of all checks of a request.
    """

    since_ms: int
    version: int
    types: Mapping[str, tuple[EventSchema, int]]
    most_steps: int


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules by which the events of a request are judged. If ``schemas`` is None, no schema is checked."""

    shape: EventShape
    schemas: _Schemas | None
    now_us: int


class Arrivals:
    """Numbers events in the order of their arrival in this process.

    The numbers are made from the clock, so that they also order the events of several processes.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._next = 0

    def number(self, batch: EventBatch) -> EventBatch:
        """Give the events of a batch higher numbers than all earlier events, even if the clock is set back."""
        with self._lock:
            first = max(self._next, self._clock.now_us() * _PER_US)
            self._next = first + len(batch)
        return batch.numbered(first)


class Intake:
    """Appends events to the log. ``context`` returns the ``traceparent`` of the current request, if it is traced."""

    def __init__(
        self,
        log: EventLog,
        registry: Registry,
        limits: Limits,
        clock: Clock,
        context: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._log = log
        self._registry = registry
        self._limits = limits
        self._clock = clock
        self._context = context
        self._schemas: dict[str, _Schemas] = {}
        self._arrivals = Arrivals(clock)

    def ingest(
        self,
        stream: str,
        objects: Sequence[object],
        *,
        shape: EventShape = "any",
        idempotency_key: str | None = None,
        part: FeedPart | None = None,
    ) -> IntakeReport:
        """Append a batch of events. When the call returns, the accepted events are durable in the log.

        ``objects`` is decoded JSON, one object per event, in order. If a feed gives ``part``, ``objects`` may contain
        ``Unreadable``. With the shape ``any``, an object with ``specversion`` is a CloudEvent, and any other object is
        read by the stream's mapping. A batch is appended once per ``idempotency_key``, the client's name for the batch.
        """
        self._check(objects, idempotency_key)
        record = self._registry.stream_with_schemas(stream)
        declaration = record.declaration
        require_posted(declaration)
        rules = _Rules(shape, self._checks(record), self._clock.now_us())
        valid_events, rejected = _sorted_out(objects, declaration, rules)
        origins = None if part is None else part.origins
        batch, ids = without_repetitions(
            valid_events, objects, [rejection.index for rejection in rejected], declaration, origins
        )
        batch, repeated = self._arrivals.number(batch), len(valid_events) - len(batch)
        letters = _Letters(stream, uuid.uuid4().hex, shape)
        submission = Submission(
            stream=stream,
            batch=batch,
            dead_letters=self._dead_letters(letters, rejected, objects, part),
            answer=_answer(len(batch), rejected, repeated),
            fingerprint="" if idempotency_key is None else _fingerprint(objects, shape),
            token=letters.token,
            idempotency_key=idempotency_key,
            keys={name: declaration.attribute_of(name) for name in declaration.keys},
            step=None if part is None else part.step,
            context=self._context(),
            ids=ids,
            dropped=repeated,
            since_ms=record.since_ms,
        )
        return _outcome(submission, self._log.append_events(submission), len(valid_events), rejected)

    def judge(self, stream: str, objects: Sequence[object], shape: EventShape = "any") -> tuple[RejectedEvent, ...]:
        """Return the events of a batch that the intake would reject, without appending the batch."""
        record = self._registry.stream_with_schemas(stream)
        require_posted(record.declaration)
        rules = _Rules(shape, self._checks(record), self._clock.now_us())
        return _sorted_out(objects, record.declaration, rules)[1]

    def _checks(self, record: StreamRecord) -> _Schemas | None:
        stream, use, since_ms = record.declaration.name, record.schemas, record.since_ms
        if not use.is_checked:
            return None
        schemas = self._schemas.get(stream)
        if schemas is None or schemas.since_ms != since_ms or schemas.version < use.version:
            records = self._registry.event_types.all(stream)
            types = {name: (EventSchema(kept.schema, is_stored=True), kept.version) for name, kept in records.items()}
            schemas = self._schemas[stream] = _Schemas(since_ms, use.version, types, self._limits.max_schema_steps)
        return schemas

    def _check(self, objects: Sequence[object], idempotency_key: str | None) -> None:
        check_idempotency_key(idempotency_key)
        limit = self._limits.max_batch_events
        if len(objects) > limit:
            raise BatchTooLarge(f"the request has {len(objects)} events; at most {limit} are accepted", limit=limit)

    def _dead_letters(
        self,
        letters: _Letters,
        rejected: Sequence[RejectedEvent],
        objects: Sequence[object],
        part: FeedPart | None,
    ) -> list[DeadLetter]:
        return [
            DeadLetter.of(
                id=f"{letters.token}-{rejection.index}",
                stream=letters.stream,
                code=rejection.code,
                reason=rejection.detail,
                index=rejection.index,
                received_us=self._clock.now_us(),
                **_letter_members(objects[rejection.index]),
                shape=letters.shape,
                **({} if part is None else {"origin": dict(part.origins[rejection.index])}),
            )
            for rejection in rejected
        ]


def _sorted_out(
    objects: Sequence[object], declaration: StreamDeclaration, rules: _Rules
) -> tuple[EventBatch, tuple[RejectedEvent, ...]]:
    schemas, latest_us = rules.schemas, latest_of(declaration, rules.now_us)
    if schemas is None and (rules.shape == "any" or _are_cloudevents(objects)):
        batch = parse_columns(objects, declaration)
        if batch is not None and not (batch.time_us > latest_us).any():
            return batch, ()

    budget = StepBudget.of(0 if schemas is None else schemas.most_steps)

    def read(value: object) -> Event:
        event = _event(value, declaration, rules.shape)
        if event.time_us > latest_us:
            raise EventAhead(
                f"its time {format_time(event.time_us)} is ahead of the clock of the service: {most_ahead(latest_us)}"
            )
        entry = None if schemas is None else schemas.types.get(event.type)
        if entry is not None:
            entry[0].require(event, entry[1], budget)
        return event

    parsed = parse_each(objects, read)
    return EventBatch.from_events([event for _, event in parsed.events]), tuple(
        RejectedEvent(index=index, code=rejection.code, detail=rejection.message)
        for index, rejection in parsed.rejections
    )


def latest_of(declaration: StreamDeclaration, now_us: int) -> int:
    """Return the latest time that an event of a stream may have at present."""
    ahead_us = declaration.max_ahead_us
    return LATEST_US if ahead_us is None else min(now_us + ahead_us, LATEST_US)


def most_ahead(latest_us: int) -> str:
    """Return the advice of an error about an event time that is too far in the future.

    It names the latest permitted time, and how to permit later times.
    """
    return (
        f"the stream takes times up to {format_time(latest_us)}; correct the time, or let the stream have a larger "
        "max_ahead (forestall streams change --max-ahead SECONDS|none)"
    )


def _outcome(submission: Submission, receipt: Receipt, valid: int, rejected: tuple[RejectedEvent, ...]) -> IntakeReport:
    """If an earlier request appended the batch, return the report on that request."""
    key = submission.idempotency_key
    if receipt.fingerprint != submission.fingerprint:
        raise _reused(key)
    if receipt.earlier is not None:
        return _report(receipt.earlier, is_duplicate=key is not None or submission.step is not None)
    return IntakeReport(
        accepted=valid - receipt.dropped, rejected=rejected, is_duplicate=False, duplicates=receipt.dropped
    )


def _are_cloudevents(objects: Sequence[object]) -> bool:
    return all(isinstance(value, Mapping) and "specversion" in value for value in objects)


def _reused(idempotency_key: str | None) -> IdempotencyKeyReused:
    return IdempotencyKeyReused(
        f"the idempotency key {idempotency_key!r} was used before with another batch; use a new key for each batch"
    )


def _event(value: object, declaration: StreamDeclaration, shape: EventShape) -> Event:
    if isinstance(value, Unreadable):
        raise EventRejected(value.detail)
    check_extent(value)
    is_cloudevent = shape == "cloudevents" or (isinstance(value, Mapping) and "specversion" in value)
    return parse_cloudevent(value, declaration) if is_cloudevent else parse_plain(value, declaration)


def _fingerprint(objects: Sequence[object], shape: EventShape) -> str:
    digest = blake2b(shape.encode(), digest_size=16)
    for value in objects:
        digest.update(_encoded(value) + b"\n")
    return digest.hexdigest()


def _encoded(value: object) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # nested too deeply for orjson, or not a JSON value: the intake rejects such an event
        return json.dumps(_writable(value, _DEEPEST), sort_keys=True, default=repr).encode()


def _writable(value: object, levels: int) -> object:
    """Return a copy of a value that ``json`` can write. Very large integers are written in hexadecimal."""
    if isinstance(value, dict | list) and levels == 0:
        return "…"
    if isinstance(value, dict):
        return {str(name): _writable(item, levels - 1) for name, item in value.items()}
    if isinstance(value, list):
        return [_writable(item, levels - 1) for item in value]
    if isinstance(value, int) and value.bit_length() > _MOST_WRITTEN_BITS:
        return hex(value)
    return value


def _letter_members(value: object) -> dict[str, Any]:
    """Return the members of a dead letter for an event that could not be processed.

    ``event`` is the event as text, which is cut if it is too long. ``whole`` says whether the text is the complete
    JSON.
    """
    text = value.text if isinstance(value, Unreadable) else _encoded(value).decode()
    is_short = len(text) <= _KEPT_CHARS
    is_whole = is_short and not isinstance(value, Unreadable) and _is_written_whole(value)
    return {"event": text if is_short else text[:_KEPT_CHARS] + "…", "whole": is_whole}


def _is_written_whole(value: object) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


def _answer(accepted: int, rejected: Sequence[RejectedEvent], duplicates: int) -> dict[str, Any]:
    return {
        "accepted": accepted,
        "duplicates": duplicates,
        "rejected": [
            {"index": rejection.index, "code": rejection.code, "detail": rejection.detail} for rejection in rejected
        ],
    }


def _report(answer: Mapping[str, Any], *, is_duplicate: bool) -> IntakeReport:
    rejected = tuple(RejectedEvent(**rejection) for rejection in answer["rejected"])
    return IntakeReport(
        accepted=answer["accepted"],
        rejected=rejected,
        is_duplicate=is_duplicate,
        duplicates=answer.get("duplicates", 0),  # absent in answers of older releases, which dropped no events
    )


def require_posted(declaration: StreamDeclaration) -> None:
    """Check that a stream accepts posted events. The events of a derived stream are made by operators."""
    if declaration.derived:
        raise StreamDerived(
            f"the stream {declaration.name!r} is derived: operators make its events, such as patterns with INTO, joins "
            f"and aggregates. Send events to the streams of these operators (GET /v1/streams/{declaration.name} names "
            "them)",
            stream=declaration.name,
        )


def check_idempotency_key(key: str | None) -> None:
    """Check that an idempotency key is not empty, not too long, and printable ASCII."""
    if key is not None and not (0 < len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable()):
        raise InvalidIdempotencyKey(f"an idempotency key has 1 to {_LONGEST_KEY} printable ASCII characters")
