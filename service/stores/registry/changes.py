"""Changes of the registry: each is one atomic script that writes records and appends the control record to every shard.

A change is computed from the record that was read and is committed only if this record is still stored; otherwise the
change is computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

import orjson

from service.errors import RegistryContended, UnknownStream
from service.stores.connection import PREFIX, Client, register
from service.stores.log.event_log import EventLog
from service.stores.log.layout import arguments_of
from service.stores.log.routes import require_there, users_key
from streams import ROUTES_KEY, STREAMS_KEY, ControlRecord, encode_control, stops_key

CONSTRAINTS_KEY = PREFIX + "constraints"
CONSTRAINT_VERSIONS_KEY = PREFIX + "constraint-versions"

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """The change of a part of an operator; its route is kept under ``user``, empty for the correlation key.

    ``control``: the control record for the log; None: the log need not know.
    """

    user: str
    stream: str
    control: ControlRecord | None
    route: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A new record and the control record that announces it to the pipeline.

    Attributes:
        control: The control record for the log; None: the log need not know.
        route: The route of an operator's later events; empty for the correlation key, and for the declaration of
            a stream. None for other changes.
        parts: The changes of the operator's parts; their control records follow the operator's own.
        stops: Whether the pause takes effect before the backlog.
        spared: The shard that has suspended the operator by itself; None: no shard has.
    """

    record: bytes
    version: int
    stream: str
    control: ControlRecord | None
    route: str | None = None
    parts: tuple[PartChange, ...] = ()
    stops: bool = False
    spared: int | None = None


Changing: TypeAlias = Callable[[bytes | None], Change | None]


class RecordBook:
    """Current records by field, and every version of them."""

    def __init__(self, client: Client, log: EventLog) -> None:
        self._client = client
        self._log = log
        self._commit = register(client, "registry/commit_record")

    def apply(self, key: str, versions_key: str, field: str, change: Changing) -> tuple[bytes, bool]:
        """Compute a change and commit it; repeated if another writer came first. None leaves the record unchanged.

        Returns the record after the call, and whether it changed.

        A script whose reply was lost is sent again and finds its own record in place of the one it was to replace. So
        if exactly the wanted version is stored, the change has been committed.
        """
        for _ in range(_ATTEMPTS):
            current = self.get(key, field)
            wanted = change(current)
            if wanted is None:
                assert current is not None, "only an existing record can stay as it is"
                return current, False
            version_field = version_of(field, wanted.version)
            commit = partial(
                _commit_record,
                self._commit,
                wanted,
                records=key,
                versions=versions_key,
                routes=ROUTES_KEY,
                users=users_key(wanted.stream),
                field=field,
                before=current or b"",
                after=wanted.record,
                version_field=version_field,
                stream=wanted.stream,
                is_routed="" if wanted.route is None else "1",
                route=wanted.route or "",
                stop=_stop_of(wanted),
                spared="" if wanted.spared is None else str(wanted.spared),
                **arguments_of(wanted.control),
            )
            reply = self._log.layout.append(commit)
            require_there(wanted.stream, reply)
            if reply:
                return wanted.record, True
            if self._client.hget(versions_key, version_field) == wanted.record:
                return wanted.record, True
        raise RegistryContended.over(f"{field!r}")

    def get(self, key: str, field: str) -> bytes | None:
        """A current record; None if there is none."""
        return cast("bytes | None", self._client.hget(key, field))

    def all(self, key: str) -> list[tuple[str, bytes]]:
        """Every current record, by field."""
        records = cast("dict[bytes, bytes]", self._client.hgetall(key))
        return sorted((field.decode(), body) for field, body in records.items())

    def versions(self, key: str, field: str, last: int) -> list[bytes]:
        """Every version of a record up to the last."""
        fields = [version_of(field, version) for version in range(1, last + 1)]
        bodies = cast("list[bytes | None]", self._client.hmget(key, fields))
        return [body for body in bodies if body is not None]


StreamChanging: TypeAlias = Callable[[bytes, bytes | None], tuple[Change, Change | None] | None]
"""From the records of a stream and its constraint set to new ones."""


class StreamBook:
    """The records of streams together with their constraint sets, as these include the end events of the stream."""

    def __init__(self, client: Client, log: EventLog) -> None:
        self._client = client
        self._log = log
        self._commit = register(client, "registry/change_stream")

    def apply(self, stream: str, change: StreamChanging) -> bytes:
        """Compute a change and commit it; repeated if another writer came first. None leaves the records unchanged.

        Returns the record of the stream after the call.
        """
        for _ in range(_ATTEMPTS):
            current = cast("bytes | None", self._client.hget(STREAMS_KEY, stream))
            if current is None:
                raise UnknownStream.named(stream)
            rules = cast("bytes | None", self._client.hget(CONSTRAINTS_KEY, stream))
            wanted = change(current, rules)
            if wanted is None:
                return current
            first, second = wanted
            commit = partial(
                self._commit,
                streams=STREAMS_KEY,
                constraints=CONSTRAINTS_KEY,
                constraint_versions=CONSTRAINT_VERSIONS_KEY,
                stream=stream,
                before=current,
                after=first.record,
                rules_before=rules or b"",
                rules_after=b"" if second is None else second.record,
                version_field="" if second is None else version_of(stream, second.version),
                controls=[part for one in wanted if one and one.control for part in arguments_of(one.control).values()],
            )
            if self._log.layout.append(commit):
                return first.record
        raise RegistryContended.over(f"the stream {stream!r}")


def _commit_record(script: Callable[..., Any], wanted: Change, **given: Any) -> Any:
    """Call the script with the keys of the shards, the routes of parts, and the stops, in this order."""
    users = [users_key(part.stream) for part in wanted.parts]
    stops = [stops_key(shard) for shard in range(given["shard_count"])] if wanted.stops else []
    parts = [
        value
        for part in wanted.parts
        for value in (part.stream, part.user, part.route, *arguments_of(part.control).values())
    ]
    return script(places=[*given.pop("shards"), *users, *stops], parts=parts, **given)


def _stop_of(change: Change) -> bytes:
    """The control records by which a change stops operators before the backlog, as the hash of stops stores them."""
    if not change.stops:
        return b""
    records = [(change.stream, change.control), *((part.stream, part.control) for part in change.parts)]
    stops = [[stream, one.KIND.value, encode_control(one).decode()] for stream, one in records if one is not None]
    return orjson.dumps(stops)


def version_of(field: str, version: int) -> str:
    """Field of one version of a record."""
    return f"{version}@{field}"
