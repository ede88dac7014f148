"""The stored states of deciders, which merge the observations of all shards into decisions (``shards.deciding``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from service.stores.connection import PREFIX, Client, register
from service.stores.log.layout import LayoutStore, arguments_of
from service.stores.log.stream_times import since_of
from service.stores.records import encode, read_record
from streams import ControlRecord

DECIDERS_KEY = PREFIX + "deciders"

_KEPT = 20  # number of retained decisions


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision of a decider. ``at_us`` is its time by the driver's clock, microseconds UTC."""

    at_us: int
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeciderRecord:
    """The record of a decider of a stream.

    Attributes:
        state: State of the decider, or None for a new decider.
        positions: Position up to which the decider has read the observations of each shard.
        total: Number of all decisions.
        decisions: The latest decisions, oldest first.
        stored: The record's bytes in Redis, or empty for a new decider.
        since: Time of the stream's declaration, in the format of ``since_of``.
    """

    state: Mapping[str, Any] | None = None
    positions: Mapping[str, str] = field(default_factory=dict)
    total: int = 0
    decisions: Sequence[Decision] = ()
    stored: bytes = b""
    since: str = ""

    def after(self, state: Mapping[str, Any], positions: Mapping[str, str], decision: Decision | None) -> DeciderRecord:
        """Return the record to store after a decider has read more observations.

        ``state`` is the new state. ``positions`` has the new position of each shard that was read.
        """
        new = () if decision is None else (decision,)
        return DeciderRecord(
            state=state,
            positions={**self.positions, **positions},
            total=self.total + len(new),
            decisions=(*self.decisions, *new)[-_KEPT:],
        )


def decider_fields(stream: str, fields: Sequence[str]) -> list[str]:
    """Return the hash fields that belong to the deciders of a stream."""
    return [name for name in fields if name.partition(" ")[0] == stream]


class DeciderStore:
    """Stores the records of deciders, by stream and name."""

    def __init__(self, client: Client, layout: LayoutStore) -> None:
        self._client = client
        self._layout = layout
        self._decide = register(client, "log/decide")

    def get(self, stream: str, name: str) -> DeciderRecord:
        """Return the record of a decider, which is empty for a new decider.

        Raise ``RecordFormatError`` if the record is damaged or was written by a newer release.
        """
        since = since_of(self._client, stream)
        stored = cast("bytes | None", self._client.hget(DECIDERS_KEY, _field(stream, name)))
        return replace(DeciderRecord() if stored is None else _read(stored, stream, name), since=since)

    def unread(self, stream: str, name: str) -> DeciderRecord:
        """Return an empty record for replacing an unreadable record. Callers pass it to ``put`` as ``before``."""
        since = since_of(self._client, stream)
        stored = cast("bytes | None", self._client.hget(DECIDERS_KEY, _field(stream, name)))
        return DeciderRecord(stored=stored or b"", since=since)

    def totals(self, name: str) -> dict[str, int]:
        """Return the number of decisions of the deciders called ``name``, by stream."""
        fields = cast("dict[bytes, bytes]", self._client.hgetall(DECIDERS_KEY))
        pairs = [(field.decode().partition(" "), stored) for field, stored in fields.items()]
        return {
            stream: _read(stored, stream, decider).total
            for (stream, _, decider), stored in sorted(pairs)
            if decider == name
        }

    def put(
        self, stream: str, name: str, before: DeciderRecord, after: DeciderRecord, record: ControlRecord | None
    ) -> bool:
        """Replace a decider's record ``before`` by ``after``, and append its decision ``record`` to every shard.

        If ``record`` is None, append nothing. If the stored record or the stream was changed since ``before`` was
        read, change nothing and return False.
        """
        body = encode(
            state=after.state,
            positions=after.positions,
            total=after.total,
            decisions=[asdict(decision) for decision in after.decisions],
        )

        reply = self._layout.append(
            self._decide,
            deciders=DECIDERS_KEY,
            field=_field(stream, name),
            before=before.stored,
            after=body,
            stream=stream,
            since=before.since,
            **arguments_of(record),
        )
        return bool(reply == 1)


def _field(stream: str, name: str) -> str:
    return f"{stream} {name}"


def _read(stored: bytes, stream: str, name: str) -> DeciderRecord:
    record = read_record(DeciderRecord, stored, f"what decides {name} of the stream {stream!r}")
    return replace(record, stored=stored)
