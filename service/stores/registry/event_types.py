"""Schemas of event types, and whether the events of a stream are checked against them.

The stream's record contains the version of its schemas, so the intake reads this version together with the declaration,
and needs nothing more for a stream without schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import orjson

from service.errors import TooManyEventTypes, UnknownEventType, UnknownStream
from service.stores.conditions import ANY, Condition
from service.stores.connection import PREFIX, Client
from service.stores.record_books import Change, RecordBook
from service.stores.records import decode, encode, read_record
from streams import STREAMS_KEY

TYPES_KEY = PREFIX + "event-types:"

_MOST_TYPES = 1_000
_VERSIONS_KEPT = 1_000  # for all types of a stream together


def versions_key(stream: str) -> str:
    """Redis key of the list of all versions of a stream's schemas."""
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
    """Whether events of a stream are checked against its schemas; ``version`` counts the changes of the schemas."""

    version: int = 0
    is_checked: bool = False


def read_use(record: Mapping[str, Any]) -> SchemaUse:
    """The use of schemas in the decoded record of a stream."""
    use = record.get("schemas")
    return SchemaUse() if use is None else SchemaUse(**use)


class EventTypeStore:
    """The schemas of all streams."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._book = RecordBook(client)

    def put(
        self, stream: str, name: str, schema: Mapping[str, Any], now_us: int, condition: Condition = ANY
    ) -> tuple[EventType, bool]:
        """Set the schema of a type unless it is the same; returns the type, and whether it had no schema before."""
        outcomes: list[tuple[EventType, bool]] = []

        def written(version: int) -> bytes | None:
            types = self.all(stream)
            former = types.get(name)
            condition.check_record(former)
            if former is not None and orjson.dumps(former.schema) == orjson.dumps(schema):
                outcomes.append((former, False))
                return None
            if former is None and len(types) >= _MOST_TYPES:
                raise TooManyEventTypes(f"{_MOST_TYPES} types of {stream!r} have schemas, the maximum")
            event_type = EventType(name=name, schema=schema, version=version, registered_us=now_us)
            outcomes.append((event_type, former is None))
            return encode(**asdict(event_type))

        self._apply(stream, name, written)
        return outcomes[-1]

    def remove(self, stream: str, name: str, condition: Condition = ANY) -> None:

        def written(_: int) -> bytes:
            condition.check_record(self.get(stream, name))
            return b""

        self._apply(stream, name, written)

    def get(self, stream: str, name: str) -> EventType:
        """The schema of an event type; raises ``UnknownEventType`` if there is none."""
        types = self.all(stream)
        if name not in types:
            raise UnknownEventType(f"the type {name[:200]!r} of {stream!r} has no schema", stream=stream)
        return types[name]

    def all(self, stream: str) -> dict[str, EventType]:
        """The schemas of a stream, by event type."""
        if self._book.get(STREAMS_KEY, stream) is None:
            raise UnknownStream.named(stream)
        bodies = self._book.all(TYPES_KEY + stream)
        return {name: read_record(EventType, body, f"the type {name!r}") for name, body in bodies}

    def versions(self, stream: str, name: str) -> list[EventType]:
        """The kept versions of a type's schema, newest last; at least the present one, if any."""
        current = self.get(stream, name)
        bodies = cast("list[bytes]", self._client.lrange(versions_key(stream), 0, -1))
        versions = [read_record(EventType, body, f"a version of the type {name!r}") for body in bodies]
        return [event_type for event_type in versions if event_type.name == name] or [current]

    def _apply(self, stream: str, name: str, written: Callable[[int], bytes | None]) -> None:
        """Change a stream's record and, in the same step, the schema of a type.

        ``written`` gets the next version of the schemas, and returns the record of the type: empty to remove the type,
        None to change nothing.
        """
        title = f"the stream {stream!r}"

        def changed(body: bytes | None) -> Change | None:
            if body is None:
                raise UnknownStream.named(stream)
            record = decode(body, title)
            use = read_use(record)
            if (new := written(use.version + 1)) is None:
                return None
            commands: list[tuple[str | bytes | int, ...]] = [("HDEL", TYPES_KEY + stream, name)]
            if new:
                commands = [
                    ("HSET", TYPES_KEY + stream, name, new),
                    ("RPUSH", versions_key(stream), new),
                    ("LTRIM", versions_key(stream), -_VERSIONS_KEPT, -1),
                ]
            after = encode(**{**record, "schemas": asdict(replace(use, version=use.version + 1))})
            return Change(record=after, commands=tuple(commands))

        self._book.apply(STREAMS_KEY, stream, changed, f"the set of schemas of {stream!r}")
