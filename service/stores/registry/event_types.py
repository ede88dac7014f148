"""Schemas of event types, against which the events of a stream can be checked.

The stream's record contains the version number of its schemas. The intake reads this number together with the stream's
declaration, so that a stream without schemas needs no further read.
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
    """Return the Redis key of the list of all versions of a stream's schemas."""
    return f"{TYPES_KEY}{stream}:versions"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """An event type with its schema.

    ``version`` is the number of the change that set the schema, counted over all schemas of the stream.
    """

    name: str
    schema: Mapping[str, Any]
    version: int
    registered_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaUse:
    """Whether events of a stream are checked against schemas. ``version`` is the number of changes of the schemas."""

    version: int = 0
    is_checked: bool = False


def read_use(record: Mapping[str, Any]) -> SchemaUse:
    """Read the use of schemas from the decoded record of a stream."""
    use = record.get("schemas")
    return SchemaUse() if use is None else SchemaUse(**use)


class EventTypeStore:
    """Stores the schemas of event types, by stream."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._book = RecordBook(client)

    def put(
        self, stream: str, name: str, schema: Mapping[str, Any], now_us: int, condition: Condition = ANY
    ) -> tuple[EventType, bool]:
        """Set the schema of an event type. An equal schema changes nothing.

        Return the event type, and whether it had no schema before.
        """
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
        """Return an event type with its schema. If it has no schema, raise ``UnknownEventType``."""
        types = self.all(stream)
        if name not in types:
            raise UnknownEventType(f"the type {name[:200]!r} of {stream!r} has no schema", stream=stream)
        return types[name]

    def all(self, stream: str) -> dict[str, EventType]:
        """Return the event types of a stream that have schemas, by name.

        If the stream is not declared, raise ``UnknownStream``.
        """
        if self._book.get(STREAMS_KEY, stream) is None:
            raise UnknownStream.named(stream)
        bodies = self._book.all(TYPES_KEY + stream)
        return {name: read_record(EventType, body, f"the type {name!r}") for name, body in bodies}

    def versions(self, stream: str, name: str) -> list[EventType]:
        """Return the retained versions of a type's schema. The last item is the current version.

        If the type has no schema, raise ``UnknownEventType``.
        """
        current = self.get(stream, name)
        bodies = cast("list[bytes]", self._client.lrange(versions_key(stream), 0, -1))
        versions = [read_record(EventType, body, f"a version of the type {name!r}") for body in bodies]
        return [event_type for event_type in versions if event_type.name == name] or [current]

    def _apply(self, stream: str, name: str, written: Callable[[int], bytes | None]) -> None:
        """Change the schema of a type, and count the change in the stream's record, atomically.

        ``written`` receives the new version number of the schemas and returns the new record of the type. Empty bytes
        remove the type. None changes nothing.
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
