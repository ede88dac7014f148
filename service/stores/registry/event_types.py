"""Schemas of event types, and whether the events of a stream are checked against them.

The stream's own record has the version of its schemas, if any. So the intake reads it with the declaration,
and a stream without schemas costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import orjson

from service.errors import RegistryContended, TooManyEventTypes, UnknownEventType, UnknownStream
from service.stores.conditions import ANY, Condition
from service.stores.connection import PREFIX, Client, register
from service.stores.records import decode, encode
from streams import STREAMS_KEY

TYPES_KEY = PREFIX + "event-types:"

_ATTEMPTS = 10
_MOST_TYPES = 1_000
_VERSIONS_KEPT = 1_000  # of all types of a stream


def versions_key(stream: str) -> str:
    """Redis key of the list of the schemas that the types of a stream have had."""
    return f"{TYPES_KEY}{stream}:versions"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """The schema of an event type; ``version`` counts the changes of the stream's schemas."""

    name: str
    schema: Mapping[str, Any]
    version: int
    registered_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaUse:
    """A stream's use of its schemas: the version counts their changes, and its events may be checked against them."""

    version: int = 0
    is_checked: bool = False


def read_use(record: Mapping[str, Any]) -> SchemaUse:
    """The use of schemas in the decoded record of a stream."""
    found = record.get("schemas")
    return SchemaUse() if found is None else SchemaUse(**found)


class EventTypeStore:
    """The schemas of all streams."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._change = register(client, "registry/change_schemas")

    def put(
        self, stream: str, name: str, schema: Mapping[str, Any], now_us: int, condition: Condition = ANY
    ) -> tuple[EventType, bool]:
        """Set the schema of a type unless it is the same; returns the type, and whether it had no schema before."""
        put: list[tuple[EventType, bool]] = []

        def written(before: SchemaUse) -> list[str | bytes] | None:
            known = self.all(stream)
            condition.check_record(known.get(name))
            if name in known and orjson.dumps(known[name].schema) == orjson.dumps(schema):
                put[:] = [(known[name], False)]
                return None
            if name not in known and len(known) >= _MOST_TYPES:
                raise TooManyEventTypes(f"{_MOST_TYPES} types of {stream!r} have schemas, the maximum")
            found = EventType(name=name, schema=schema, version=before.version + 1, registered_us=now_us)
            put[:] = [(found, name not in known)]
            return [name, encode(**asdict(found))]

        self._apply(stream, written)
        return put[0]

    def remove(self, stream: str, name: str, condition: Condition = ANY) -> None:
        """Remove the schema of a type."""

        def written(_: SchemaUse) -> list[str | bytes]:
            condition.check_record(self.get(stream, name))
            return [name, ""]

        self._apply(stream, written)

    def get(self, stream: str, name: str) -> EventType:
        """The schema of an event type; raises ``UnknownEventType`` if there is none."""
        found = self.all(stream)
        if name not in found:
            raise UnknownEventType(f"the type {name[:200]!r} of {stream!r} has no schema", stream=stream)
        return found[name]

    def all(self, stream: str) -> dict[str, EventType]:
        """The types that have schemas, by name."""
        self._record(stream)
        found = cast("dict[bytes, bytes]", self._client.hgetall(TYPES_KEY + stream))
        return {
            name.decode(): EventType(**decode(body, f"the type {name.decode()!r}"))
            for name, body in sorted(found.items())
        }

    def versions(self, stream: str, name: str) -> list[EventType]:
        """The schemas that are kept of a type, the newest last; at least the present one, if any."""
        current = self.get(stream, name)
        found = cast("list[bytes]", self._client.lrange(versions_key(stream), 0, -1))
        kept = [EventType(**decode(body, f"a version of the type {name!r}")) for body in found]
        return [one for one in kept if one.name == name] or [current]

    def _record(self, stream: str) -> bytes:
        body = cast("bytes | None", self._client.hget(STREAMS_KEY, stream))
        if body is None:
            raise UnknownStream.named(stream)
        return body

    def _apply(self, stream: str, written: Callable[[SchemaUse], list[str | bytes] | None]) -> None:
        """Change a stream's record and, in the same step, its schemas; repeated if another writer came first.

        ``written`` gets the use of schemas before the change and returns fields and values, or None to change nothing.
        """
        for _ in range(_ATTEMPTS):
            body = self._record(stream)
            record = decode(body, f"the stream {stream!r}")
            known = read_use(record)
            changed = encode(**{**record, "schemas": asdict(replace(known, version=known.version + 1))})
            arguments = written(known)
            if arguments is None:
                return
            is_changed = self._change(
                streams=STREAMS_KEY,
                types=TYPES_KEY + stream,
                versions=versions_key(stream),
                kept=_VERSIONS_KEPT,
                stream=stream,
                before=body,
                after=changed,
                written=arguments,
            )
            if is_changed:
                return
        raise RegistryContended(f"the schemas of {stream!r} are being changed by other clients; try again")
