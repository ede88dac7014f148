"""The removal of a stream together with all its resources, such as patterns, webhooks and feeds, by one script.

Every record about a stream contains the stream's name. The removal first reads all these records and plans the changes.
The script then searches the hashes for the name again. If another caller has added or changed a record meanwhile, the
script removes nothing and the removal is planned again.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha1
from typing import Any, TypeAlias, cast

from service.errors import RegistryContended, StreamInUse, UnknownStream
from service.stores.conditions import Condition
from service.stores.connection import PREFIX, Client, register
from service.stores.deliveries.webhooks import TURNS_KEY, WEBHOOKS_KEY, WEBHOOKS_READ_KEY, belongings_of, read_webhook
from service.stores.log.deciders import DECIDERS_KEY, decider_fields
from service.stores.log.event_ids import DUPLICATES_KEY, EVENT_IDS_KEY
from service.stores.log.event_log import EventLog
from service.stores.log.feeds import FEED_STREAMS_KEY, mark_key
from service.stores.log.stream_times import CLOSED_PART, times_of
from service.stores.record_books import USES_KEY, Checks, uses_of, version_of
from service.stores.records import decode, encode, read_record
from service.stores.registry.event_types import TYPES_KEY, versions_key
from service.stores.registry.operators import OPERATORS_KEY, PATTERNS_KEY
from service.stores.registry.registered import RegisteredConstraints, RegisteredOperator, read_pattern, read_stream
from service.stores.routes import GONE, users_key
from streams import ROUTES_KEY, STREAM_TIMES_KEY, STREAMS_KEY, StreamOff, encode_control, log_key

STREAM_VERSIONS_KEY = STREAMS_KEY + ":versions"
CONSTRAINTS_KEY = PREFIX + "constraints"
CONSTRAINT_VERSIONS_KEY = PREFIX + "constraint-versions"

_ATTEMPTS = 5
_CALL_MS = 60_000
_SHOWN = 10
_EXAMINED = (PATTERNS_KEY, OPERATORS_KEY, WEBHOOKS_KEY, CONSTRAINTS_KEY, FEED_STREAMS_KEY)
_HASHES = (
    *_EXAMINED,
    CONSTRAINT_VERSIONS_KEY,
    STREAM_VERSIONS_KEY,
    STREAM_TIMES_KEY,
    DUPLICATES_KEY,
    DECIDERS_KEY,
    ROUTES_KEY,
    USES_KEY,
)

_LATEST = USES_KEY, "removed streams"

_Records: TypeAlias = Mapping[tuple[str, str], bytes]
"""Records by hash and field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamUse:
    """A resource that uses a stream.

    Attributes:
        kind: Kind of an operator (such as ``pattern``), or ``constraints``, ``workflow``, ``webhook``, ``sink``,
            ``event-type`` or ``feed``.
        name: Name of the resource, or the id of a webhook without a name.
        state: State of an operator, or empty for other resources.
        feeds: Whether the resource prevents even a cascading removal of the stream. This holds for operators that feed
            the stream, and for operators other than patterns that feed any derived stream.
    """

    kind: str
    name: str
    state: str = ""
    feeds: bool = False

    @property
    def is_in_the_way(self) -> bool:
        """Whether the resource prevents a removal of the stream alone. Retired operators do not prevent the removal."""
        return self.state != "retired"


@dataclass(frozen=True, slots=True)
class _Removal:
    """The plan of a stream's removal. Empty bytes in ``changes`` remove the record of the hash and field."""

    uses: list[StreamUse]
    changes: dict[tuple[str, str], bytes]
    dropped: list[str]


class StreamRemoval:
    """Removes streams with their resources."""

    def __init__(self, client: Client, log: EventLog) -> None:
        self._client = client
        self._log = log
        self._remove = register(client, "registry/remove_stream")

    def uses(self, stream: str, condition: Condition) -> list[StreamUse]:
        self._checked(stream, condition)
        return self._planned(stream, self._mentions(stream)).uses

    def remove(self, stream: str, condition: Condition, *, is_cascading: bool) -> list[StreamUse]:
        """Remove a stream and the resources that use it. Return the resources.

        If a resource is in the way (``is_in_the_way``), raise ``StreamInUse``. If ``is_cascading``, only resources
        whose ``feeds`` is true can be in the way.
        """
        token = f"{PREFIX}removal:{uuid.uuid4().hex}"
        for _ in range(_ATTEMPTS):
            before = self._checked(stream, condition)
            mentions = self._mentions(stream)
            plan = self._planned(stream, mentions)
            plan.changes[_LATEST] = token.encode()
            blocking = [use for use in plan.uses if use.is_in_the_way]
            feeding = [use for use in blocking if use.feeds]
            _require_none(stream, feeding, "; what feeds a derived stream is not removed with a stream")
            if not is_cascading:
                _require_none(stream, blocking, ", or let an admin key remove all of it with ?cascade=true")
            if self._committed(token, stream, before, mentions, plan):
                return plan.uses
        raise RegistryContended.over(f"the stream {stream!r}")

    def check(self) -> Checks:
        """Return a check that fails after the removal of any stream."""
        return ((*_LATEST, cast("bytes | None", self._client.hget(*_LATEST)) or b""),)

    def is_removed(self, stream: str) -> bool:
        """Return whether a stream was removed and not declared again."""
        return self._client.hget(ROUTES_KEY, stream) == GONE

    def _checked(self, stream: str, condition: Condition) -> bytes:
        body = cast("bytes | None", self._client.hget(STREAMS_KEY, stream))
        if body is None:
            raise UnknownStream.named(stream)
        condition.check_record(read_stream(body, stream))
        return body

    def _mentions(self, stream: str) -> _Records:
        mentions: dict[tuple[str, str], bytes] = {}
        for key in _EXAMINED:
            records = cast("dict[bytes, bytes]", self._client.hgetall(key))
            mentions |= {(key, field.decode()): body for field, body in records.items() if _mention(stream) in body}
        return mentions

    def _deciders(self, stream: str) -> list[str]:
        fields = cast("list[bytes]", self._client.hkeys(DECIDERS_KEY))
        return decider_fields(stream, [field.decode() for field in fields])

    def _planned(self, stream: str, mentions: _Records) -> _Removal:
        removed = [
            (STREAM_VERSIONS_KEY, version_of(stream, 1)),
            (DUPLICATES_KEY, stream),
            uses_of(STREAMS_KEY, stream),
            uses_of(CONSTRAINTS_KEY, stream),
            *((STREAM_TIMES_KEY, field) for field in (*times_of(stream), stream + CLOSED_PART)),
            *((DECIDERS_KEY, field) for field in self._deciders(stream)),
        ]
        dropped = [users_key(stream), TYPES_KEY + stream, versions_key(stream), WEBHOOKS_READ_KEY]
        plan = _Removal([], dict.fromkeys(removed, b""), dropped)
        plan.changes[ROUTES_KEY, stream] = GONE
        for (key, field), body in sorted(mentions.items()):
            _PLANNERS[key](plan, stream, field, body)
        types = cast("list[bytes]", self._client.hkeys(TYPES_KEY + stream))
        plan.uses.extend(
            StreamUse(kind="event-type", name=name) for name in sorted(type_name.decode() for type_name in types)
        )
        return plan

    def _committed(self, token: str, stream: str, before: bytes, mentions: _Records, plan: _Removal) -> bool:
        control = StreamOff(stream)
        digests = [(*place, sha1(body, usedforsecurity=False).hexdigest()) for place, body in mentions.items()]
        changes = [(*place, body) for place, body in plan.changes.items()]

        def remove(shards: int) -> Any:
            return self._remove(
                call=token,
                event_ids=EVENT_IDS_KEY + stream,
                turns=TURNS_KEY,
                places=[*(log_key(shard) for shard in range(shards)), *_HASHES, *plan.dropped],
                call_ms=_CALL_MS,
                stream=stream,
                before=before,
                kind=control.KIND.value,
                body=encode_control(control),
                shard_count=shards,
                hashes=len(_HASHES),
                examined=len(_EXAMINED),
                known=len(digests),
                mention=_mention(stream),
                webhooks=1 + _HASHES.index(WEBHOOKS_KEY),
                changes=[
                    part for key, *arguments in (*digests, *changes) for part in (1 + _HASHES.index(key), *arguments)
                ],
            )

        return bool(self._log.layout.fitted(remove))


def _mention(stream: str) -> bytes:
    """Return the text by which records about a stream are found, which is the stream's name in quotes."""
    return b'"%b"' % stream.encode()


def _require_none(stream: str, uses: Sequence[StreamUse], more_advice: str) -> None:
    if not uses:
        return
    listed = ", ".join(f"the {use.kind} {use.name}" for use in uses[:_SHOWN])
    more = f" and {len(uses) - _SHOWN} more" if len(uses) > _SHOWN else ""
    raise StreamInUse(
        f"the stream {stream!r} is in use: delete {listed}{more} first{more_advice}",
        stream=stream,
        uses=[{"kind": use.kind, "name": use.name, "state": use.state} for use in uses],
    )


def _plan_pattern(plan: _Removal, stream: str, field: str, body: bytes) -> None:
    record = read_pattern(body, field)
    if record.is_active and record.stream == stream:
        plan.uses.append(StreamUse(kind="pattern", name=record.name, state=record.state))
        plan.changes[PATTERNS_KEY, field] = encode(**replace(record, is_active=False).tagged())
    elif record.is_active and record.into == stream:
        plan.uses.append(StreamUse(kind="pattern", name=record.name, state=record.state, feeds=True))


def _plan_operator(plan: _Removal, stream: str, field: str, body: bytes) -> None:
    record = read_record(RegisteredOperator, body, f"the operator {field!r}")
    fed = {feeder.into for feeder in record.feeders}
    if record.is_active and stream in record.listens_to | fed:
        is_elsewhere = bool(fed)  # removing the stream would remove only a part of the resource
        plan.uses.append(StreamUse(kind=record.kind, name=record.name, state=record.state, feeds=is_elsewhere))
        plan.changes[OPERATORS_KEY, field] = encode(**replace(record, is_active=False).tagged())


def _plan_webhook(plan: _Removal, stream: str, field: str, body: bytes) -> None:
    webhook = read_webhook(body, field)
    if webhook.stream == stream:
        plan.uses.append(StreamUse(kind="sink" if webhook.sink else "webhook", name=webhook.name or webhook.id))
        plan.changes[WEBHOOKS_KEY, field] = b""
        plan.dropped.extend(belongings_of(webhook.id))


def _plan_constraints(plan: _Removal, stream: str, field: str, body: bytes) -> None:
    if field != stream:
        return
    record = read_record(RegisteredConstraints, body, f"the constraint set of {field!r}")
    if any(record.written.values()):
        plan.uses.append(StreamUse(kind="constraints", name=field))
    if record.following is not None:
        plan.uses.append(StreamUse(kind="workflow", name=record.following.workflow))
    plan.changes[CONSTRAINTS_KEY, field] = b""
    versions = (version_of(field, version) for version in range(1, record.version + 1))
    plan.changes.update({(CONSTRAINT_VERSIONS_KEY, version): b"" for version in versions})


def _plan_feed(plan: _Removal, stream: str, field: str, body: bytes) -> None:
    if decode(body, f"the feed {field!r}")["stream"] == stream:
        plan.uses.append(StreamUse(kind="feed", name=field))
        plan.changes[FEED_STREAMS_KEY, field] = b""
        plan.dropped.append(mark_key(field))


_PLANNERS = {
    PATTERNS_KEY: _plan_pattern,
    OPERATORS_KEY: _plan_operator,
    WEBHOOKS_KEY: _plan_webhook,
    CONSTRAINTS_KEY: _plan_constraints,
    FEED_STREAMS_KEY: _plan_feed,
}
