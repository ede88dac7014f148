"""Patterns tried on the newest events of the log, before they are registered: nothing is kept."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from nfa import Match, Pattern, Prune
from service.observing.measured_lateness import as_in_force
from service.registering.registration import Registration
from service.registering.routing import routed
from service.registering.strangers import strangers
from service.runtime import Stores
from service.stores import LogTail
from service.trials.matching import SECTIONS, MatchOptions, match_events
from streams import Event, EventBatch, LogEntry, RecordKind, StreamDeclaration, position_order

_SHOWN_MATCHES = 100
_SHOWN_LOSSES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a pattern would have found.

    Attributes:
        pattern: Its name.
        stream: Where it was tried.
        events: How many events it saw.
        first_us: Time of the oldest of them; None where there are none.
        last_us: Time of the newest of them.
        matches: The first of them.
        matched: How many there are.
        endings: In how many transactions it could no longer match, by form and reason.
        timeouts: How many partial matches WITHIN ended, where the pattern tells them.
        dropped: Matches beyond a limit, which are not among those counted.
        partial_matches: (pattern, instance) pairs that are bound in partial matches at the end.
        warnings: What can never match, and what is probably not meant, in words.
        took_ms: How long matching took.
    """

    pattern: str
    stream: str
    events: int
    first_us: int | None
    last_us: int | None
    matches: tuple[Match, ...]
    matched: int
    endings: Counter[tuple[str, str]]
    timeouts: int
    dropped: int
    partial_matches: int
    warnings: tuple[str, ...]
    took_ms: float


class DryRuns:
    """Tries patterns.

    Args:
        stores: Where the log and the registry are.
        registration: Checks them as if they were to be registered.
    """

    def __init__(self, stores: Stores, registration: Registration) -> None:
        self._stores = stores
        self._registration = registration
        self._tail = LogTail(stores.client)

    def run(self, stream: str, pattern: Pattern, *, is_guarded: bool, most_events: int) -> DryRun:
        """Match a pattern over the newest events of a stream, of which open transactions stay open.

        Args:
            stream: Its name.
            pattern: The pattern.
            is_guarded: Whether the stream's current constraints terminate its partial matches early.
            most_events: The number of events to match.

        Raises:
            ForestallError: As for ``Registration.register_pattern``.
        """
        warnings = self._registration.check_pattern(stream, pattern, is_guarded=is_guarded)
        declaration = as_in_force(self._stores, self._stores.registry.stream(stream))
        on_stream = routed(pattern, declaration)
        route = on_stream.route
        events = self._events(declaration, route, most_events)
        rules = self._registration.constraint_set(
            declaration, route=route, is_guarded=is_guarded and on_stream.has_whole_traces
        )
        found_out = strangers([pattern], EventBatch.from_events(events))
        warnings += tuple(
            f"line {one.position.line}, column {one.position.column}: {one.message}" for _, one in found_out
        )
        begin_s = time.perf_counter()
        is_plain = bool(route) or not is_guarded or not rules.parts
        options = self._options(declaration, route, is_plain=is_plain)
        found = match_events([pattern], events, rules, options)
        given_up = [loss for loss in found.overflow if loss.work]
        warnings += tuple(
            f"it was given up in the transaction {loss.key!r} at the event {loss.event_id!r}, as its events met more "
            "partial matches than the budget allows" + (", and suspended" if loss.suspends else "")
            for loss in given_up[:_SHOWN_LOSSES]
        )
        return DryRun(
            pattern=pattern.name,
            stream=stream,
            events=len(events),
            first_us=min((event.time_us for event in events), default=None),
            last_us=max((event.time_us for event in events), default=None),
            matches=found.matches[:_SHOWN_MATCHES],
            matched=len(found.matches),
            endings=Counter((pair.form, pair.reason) for pair in found.ended),
            timeouts=len(found.timeouts),
            dropped=sum(overflow.dropped for overflow in found.overflow),
            partial_matches=found.stats.held,
            warnings=warnings,
            took_ms=(time.perf_counter() - begin_s) * 1_000,
        )

    def _options(self, declaration: StreamDeclaration, route: str, *, is_plain: bool) -> MatchOptions:
        """How the stream matches by that key; ``is_plain``: no constraint drops partial matches."""
        return replace(
            MatchOptions.of(declaration, route),
            sections=SECTIONS,
            is_open=True,
            prune=Prune.OFF if is_plain else None,
            end_events=self._registration.trace_ends(declaration, route=route),
            budget=self._registration.budget,
        )

    def _events(self, declaration: StreamDeclaration, route: str, most: int) -> list[Event]:
        """The newest events of a stream over all shards, in the order in which they came."""
        shards = range(self._stores.log.layout.read().shards)
        since_ms = self._stores.registry.since_ms(declaration.name)
        newest_first = heapq.merge(*(self._tail.newest_first(shard, since_ms) for shard in shards), key=_age)
        found: list[list[Event]] = []
        held = 0
        for batch in _batches(newest_first, declaration, route):
            found.append(batch.to_events())
            held += len(batch)
            if held >= most:
                break
        return [event for events in reversed(found) for event in events][-most:]


def _age(entry: LogEntry) -> tuple[int, int]:
    milliseconds, sequence = position_order(entry.position)
    return -milliseconds, -sequence


def _batches(entries: Iterator[LogEntry], declaration: StreamDeclaration, route: str) -> Iterator[EventBatch]:
    """The events of a stream, by the key that is wanted."""
    for entry in entries:
        if entry.kind is RecordKind.EVENTS and entry.stream == declaration.name and not entry.route:
            batch = EventBatch.from_bytes(entry.body)
            yield batch.keyed_by(declaration.attribute_of(route)) if route else batch
