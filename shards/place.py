"""One key of a stream within a shard: its declaration, the order of its events, and the hosts that sit there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from shards.entries import Entry
from shards.event_order import LATE_COUNTS, EventOrder
from shards.operators import Host, KeyChoice, Kind, Output, SavedHost
from streams import (
    ConstraintsOn,
    ControlRecordError,
    EventBatch,
    StreamDeclaration,
)

_EVENT_TIME = ("lateness", "late", "idle_timeout", "quiet_after")
_WAITING = "waiting"

Step: TypeAlias = tuple[Entry, Output]
"""An output, and the last entry that contributed to it."""


class Place:
    """Puts the events of one key of a stream into order and hands them to the hosts.

    Args:
        declaration: As the log said last.
        route: Name of the further key; empty for the correlation key.
        kinds: The kinds of operators, by name.
        hosts: By kind.
    """

    def __init__(
        self, declaration: StreamDeclaration, route: str, kinds: Mapping[str, Kind], hosts: Mapping[str, Host]
    ) -> None:
        self._declaration = declaration
        self._route = route
        self._kinds = kinds
        self._hosts = dict(hosts)
        lateness_us = declaration.lateness_us
        self._order = None if lateness_us is None else EventOrder[Output](lateness_us, declaration.late)

    @classmethod
    def declared(cls, declaration: StreamDeclaration, route: str, kinds: Mapping[str, Kind]) -> Place:
        """A new place, with the hosts that every stream has.

        Raises:
            DeclarationError: The stream does not declare that key.
        """
        resident = (kind for kind in kinds.values() if kind.is_resident)
        return cls(declaration, route, kinds, {kind.name: kind.host(declaration, route) for kind in resident})

    @property
    def declaration(self) -> StreamDeclaration:
        """As the log said last."""
        return self._declaration

    @property
    def route(self) -> str:
        """Name of the further key; empty for the correlation key."""
        return self._route

    @property
    def is_used(self) -> bool:
        """Whether any operator runs."""
        return any(host.names for host in self._hosts.values())

    def runs(self, kind: str, name: str) -> bool:
        """Whether an operator runs."""
        return kind in self._hosts and name in self._hosts[kind].names

    def host(self, kind: str) -> Host:
        """The host of a kind, made where there is none.

        Raises:
            ControlRecordError: This release does not know the kind.
        """
        if kind not in self._hosts:
            self._hosts[kind] = _known(kind, self._kinds).host(self._declaration, self._route)
        return self._hosts[kind]

    def measures(self) -> dict[str, int | None]:
        """Numbers of the hosts, and event time in numbers.

        ``late_dropped``, ``late_dead_lettered`` and ``late_processed`` events so far, those ``waiting`` for older ones,
        and ``watermark_us``: how far time has come; None before the first event.
        """
        times = [host.newest_us for host in self._hosts.values() if host.newest_us is not None]
        order = self._order
        return {
            **{name: number for host in self._hosts.values() for name, number in host.measures().items()},
            **(dict.fromkeys(LATE_COUNTS, 0) if order is None else order.counts),
            "waiting": 0 if order is None else len(order.buffer),
            "watermark_us": max(times, default=None) if order is None else order.buffer.watermark_us,
        }

    def declare(self, declaration: StreamDeclaration) -> None:
        """Take a later declaration of the same stream.

        Raises:
            ControlRecordError: Its keys, end events, ties or event time differ: open traces would have to be re-read.
        """
        known = self._declaration
        changed = {
            "key": declaration.key != known.key,
            "keys": declaration.keys != known.keys,
            "end_events": set(declaration.end_events) != set(known.end_events),
            "ties": declaration.ties != known.ties,
            **{name: getattr(declaration, name) != getattr(known, name) for name in _EVENT_TIME},
        }
        for name, has_changed in changed.items():
            if has_changed:
                raise ControlRecordError(
                    f"stream {declaration.name!r}: the {name.replace('_', ' ')} of a declared stream cannot change",
                    field=name,
                )
        self._declaration = declaration

    def follow(self, record: ConstraintsOn) -> None:
        """Let traces that begin later follow these constraints.

        Raises:
            ForestallError: They are refused.
        """
        for host in self._hosts.values():
            host.follow(record)

    def process(self, entries: Sequence[Entry], batches: Sequence[EventBatch]) -> Iterator[Step]:
        """Take decoded batches in.

        Args:
            entries: In the order of the log.
            batches: What each of them holds.
        """
        if self._order is not None:
            yield from self._order.take(self._hosts.values(), entries, batches)
            return
        for host in self._hosts.values():
            for last, batch in _in_order(batches, host):
                yield entries[last], host.process(batch)

    def tick(self, entry: Entry, time_us: int) -> Iterator[Step]:
        """An event of a time was seen elsewhere, or would have been by now."""
        if self._order is None:
            yield from self.advance_time(entry, time_us)
        else:
            yield from self._order.see(self._hosts.values(), entry, time_us)

    def advance_time(self, entry: Entry, watermark_us: int) -> Iterator[Step]:
        """No event before a time comes any more: those that wait for it go to the hosts, and so does the time."""
        if self._order is None:
            for host in self._hosts.values():
                yield entry, host.advance_time(watermark_us)
        else:
            yield from self._order.advance(self._hosts.values(), entry, watermark_us)

    def end_trace(self, entry: Entry, key: str, time_us: int | None) -> Iterator[Step]:
        """The trace of a key ends, at the newest time or at an earlier one.

        Events of the key that still wait for older ones open another trace.
        """
        for host in self._hosts.values():
            yield entry, host.end_trace(key, time_us)

    def finish(self, entry: Entry) -> Iterator[Step]:
        """The input is finite, and that was all of it."""
        if self._order is not None:
            yield from self._order.drain(self._hosts.values(), entry)
        for host in self._hosts.values():
            yield entry, host.finish()

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Forget every other key, as if its events had gone elsewhere.

        Args:
            is_kept: Which of some hashes of keys stay.
            has_counts: Go on from the counts so far; else from 0.
        """
        for host in self._hosts.values():
            host.keep(is_kept, has_counts=has_counts)
        if self._order is not None:
            self._order.keep(is_kept, has_counts=has_counts)

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and sections by name."""
        saved = {kind: host.dump() for kind, host in self._hosts.items()}
        head: dict[str, Any] = {
            "declaration": self._declaration.to_json(),
            "route": self._route,
            "late": dict.fromkeys(LATE_COUNTS, 0) if self._order is None else self._order.counts,
            "hosts": {kind: dict(host.head) for kind, host in saved.items()},
        }
        sections = {f"{kind}/{name}": body for kind, host in saved.items() for name, body in host.sections.items()}
        if self._order is not None:
            head["order"], sections[_WAITING] = self._order.buffer.dump()
        return head, sections

    @classmethod
    def load(cls, head: Mapping[str, Any], sections: Mapping[str, bytes], kinds: Mapping[str, Kind]) -> Place:
        """The place that ``dump`` saved.

        Raises:
            ForestallError: A part cannot be read, or a host is of a kind that this release does not know.
        """
        declaration, route = StreamDeclaration.from_json(head["declaration"]), head["route"]
        hosts: dict[str, Host] = {}
        for kind, host_head in head["hosts"].items():
            own = {name.partition("/")[2]: body for name, body in sections.items() if name.startswith(f"{kind}/")}
            hosts[kind] = _known(kind, kinds).host(declaration, route, SavedHost(head=host_head, sections=own))
        place = cls(declaration, route, kinds, hosts)
        if place._order is not None:
            place._order.counts.update(head["late"])
            place._order.buffer.load(head["order"], sections[_WAITING])
        return place


def _known(kind: str, kinds: Mapping[str, Kind]) -> Kind:
    if kind not in kinds:
        raise ControlRecordError(
            f"no operators of the kind {kind!r} exist in this release; it knows {', '.join(sorted(kinds))}", kind=kind
        )
    return kinds[kind]


def _in_order(batches: Sequence[EventBatch], host: Host) -> Iterator[tuple[int, EventBatch]]:
    """Batches that a host takes one after the other, each with the number of the last one in it.

    Time passes at the end of what is taken together. Where an operator waits for it, a batch with an event that is
    older than one before the batch is not put together with what came before.
    """
    newest_us = host.newest_us
    is_open = not host.waits_for_time
    first = 0
    for number, batch in enumerate(batches):
        times_us = batch.time_us
        if not len(times_us):
            continue
        if number > first and not (is_open or newest_us is None or times_us.min() >= newest_us):
            yield number - 1, EventBatch.joined(batches[first:number])
            first = number
        newest_us = int(times_us.max()) if newest_us is None else max(newest_us, int(times_us.max()))
    yield len(batches) - 1, EventBatch.joined(batches[first:])
