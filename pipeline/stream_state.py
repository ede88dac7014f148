"""One stream within one shard: its declaration, its matcher, the constraint documents that traces still follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa import Matcher, MatcherStats, MatchOutput, parse_pattern
from pipeline.entries import Entry
from pipeline.findings import Finding, Teller, late_letter
from pipeline.rules import Rules, rules_of
from streams import (
    ConstraintsOn,
    ControlRecordError,
    EventBatch,
    PatternOn,
    ReorderBuffer,
    StreamDeclaration,
    shard_of,
)

_EVENT_TIME = ("lateness", "late", "idle_timeout", "quiet_after")
_LATE = {"drop": "late_dropped", "dead_letter": "late_dead_lettered", "process": "late_processed"}

TELLS_NOTHING = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """One version of a stream's constraints."""

    name: str
    document: Any
    rules: Rules


class StreamState:
    """Applies what the log says about one stream; findings are single ones or columns of them.

    Attributes:
        endings_told: Of what is matched together, so many endings are told one by one; None: all. Nothing at all is
            told where it is ``TELLS_NOTHING``.

    Args:
        declaration: As the log said last.
        matcher: The state of the stream's traces.
        versions: Constraints by version: the newest, and those that open traces follow.
        route: Name of the further key whose traces they are; empty for those of the correlation key.
    """

    def __init__(
        self, declaration: StreamDeclaration, matcher: Matcher, versions: Mapping[int, _Version], *, route: str = ""
    ) -> None:
        self.endings_told: int | None = None
        self._declaration = declaration
        self._route = route
        self._matcher = matcher
        self._versions = dict(versions)
        lateness_us = declaration.lateness_us
        self._buffer = None if lateness_us is None else ReorderBuffer(lateness_us)
        self._counts = dict.fromkeys(_LATE.values(), 0)

    @classmethod
    def declared(cls, declaration: StreamDeclaration, route: str = "") -> StreamState:
        """A new stream; with a route, the traces of a further key, which have no end and no constraints.

        Raises:
            DeclarationError: The stream does not declare that key.
        """
        if route:
            paths = declaration.route_paths(route)
            return cls(
                declaration, Matcher(ties=declaration.ties, key_paths=paths, may_be_guarded=False), {}, route=route
            )
        matcher = Matcher(
            end_events=declaration.end_events,
            ties=declaration.ties,
            key_paths=declaration.key_paths,
            idle_timeout_us=declaration.idle_timeout_us,
        )
        return cls(declaration, matcher, {})

    @property
    def declaration(self) -> StreamDeclaration:
        """As the log said last."""
        return self._declaration

    @property
    def route(self) -> str:
        """Name of the further key whose traces they are; empty for those of the correlation key."""
        return self._route

    @property
    def has_patterns(self) -> bool:
        """Whether any pattern runs."""
        return bool(self._matcher.patterns)

    def runs(self, pattern: str) -> bool:
        """Whether a pattern of that name runs."""
        return pattern in self._matcher.patterns

    @property
    def stats(self) -> MatcherStats:
        """Counts of the stream's matcher."""
        return self._matcher.stats

    def measures(self) -> dict[str, Any]:
        """Numbers for whoever watches, as plain JSON."""
        stats = self._matcher.stats
        return {"events": stats.events, "open_traces": stats.open_traces, "held": stats.held, **self.counts}

    @property
    def counts(self) -> dict[str, int | None]:
        """Event time in numbers.

        ``late_dropped``, ``late_dead_lettered`` and ``late_processed`` events so far, those ``waiting`` for older ones,
        and ``watermark_us``: how far time has come; None before the first event.
        """
        buffer = self._buffer
        watermark_us = self._matcher.newest_us if buffer is None else buffer.watermark_us
        waiting = 0 if buffer is None else len(buffer)
        return {**self._counts, "waiting": waiting, "watermark_us": watermark_us}

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

    def start_pattern(self, record: PatternOn) -> None:
        """Start a pattern; a version that is running already goes on.

        Raises:
            PatternError: The text is refused.
            ControlRecordError: The text names its pattern otherwise than the record does.
        """
        running = self._matcher.patterns.get(record.name)
        if running is not None and (running.version, running.text) == (record.version, record.text):
            return
        named = parse_pattern(record.text).name
        if named != record.name:
            raise ControlRecordError(f"pattern-on record: pattern {record.name!r} calls itself {named!r} in its text")
        self._matcher.add_pattern(
            record.text,
            version=record.version,
            is_guarded=record.is_guarded,
            drains=record.start == "migrate",
        )

    def stop_pattern(self, name: str) -> None:
        """Stop a pattern; its partial matches go.

        Raises:
            PatternError: No such pattern runs.
        """
        self._matcher.remove_pattern(name)

    def follow(self, record: ConstraintsOn) -> None:
        """Let traces that begin later follow these constraints.

        Only the end events that the stream declares end a trace, and from here on those of constraints that say
        ``reopen: new_transaction``; other end events close the monitor of a trace, which stays open.

        Raises:
            ConstraintError: The document is refused.
            ControlRecordError: The version was taken by another document.
        """
        known = self._versions.get(record.version)
        if known is not None and known.document != record.document:
            raise ControlRecordError(
                f"constraints-on record: version {record.version} of stream {self._declaration.name!r} "
                "is another document"
            )
        rules = rules_of(record.document, self._declaration.ties)
        self._matcher.set_guard(record.version, rules.monitor)
        self._matcher.set_end_events(rules.trace_ends.union(self._declaration.end_events))
        self._versions[record.version] = _Version(name=record.name, document=record.document, rules=rules)

    def process(self, shard: int, entries: Sequence[Entry], batches: Sequence[EventBatch]) -> Iterator[Finding]:
        """Match decoded batches.

        Args:
            shard: Where the entries are.
            entries: In the order of the log.
            batches: What each of them holds.
        """
        if self._buffer is None:
            for last, batch in self._in_order(batches):
                yield from self._told(shard, entries[last], self._matcher.process(batch))
            return
        batch = EventBatch.joined(batches)
        late = self._buffer.is_late(batch.time_us)
        if late.any():
            yield from self._with_late(shard, entries, batches, late)
        else:
            yield from self._released(shard, entries[-1], self._buffer.push(batch))

    def tick(self, shard: int, entry: Entry, time_us: int) -> Iterator[Finding]:
        """An event of a time was seen elsewhere, or would have been by now."""
        if self._buffer is None:
            yield from self.advance_time(shard, entry, time_us)
        else:
            yield from self._released(shard, entry, self._buffer.see(time_us))

    def advance_time(self, shard: int, entry: Entry, watermark_us: int) -> Iterator[Finding]:
        """No event before a time comes any more: those that wait for it are matched, and what it decides is told."""
        if self._buffer is None:
            yield from self._told(shard, entry, self._matcher.pass_time(watermark_us))
        else:
            yield from self._released(shard, entry, self._buffer.advance(watermark_us))

    def end_trace(self, shard: int, entry: Entry, key: str, time_us: int | None) -> Iterator[Finding]:
        """The trace of a key ends, at the newest time or at an earlier one.

        Events of the key that still wait for older ones open another trace.
        """
        yield from self._told(shard, entry, self._matcher.end_traces([key], time_us))

    def finish(self, shard: int, entry: Entry) -> Iterator[Finding]:
        """End every trace: the input is finite, and that was all of it."""
        if self._buffer is not None:
            yield from self._released(shard, entry, self._buffer.drain())
        yield from self._told(shard, entry, self._matcher.finish())

    def _in_order(self, batches: Sequence[EventBatch]) -> Iterator[tuple[int, EventBatch]]:
        """Batches to be matched one after the other, each with the number of the last one in it.

        Time passes at the end of what is matched together. Where somebody waits for it, a batch with an event that is
        older than one before the batch is not put together with what came before.
        """
        newest_us = self._matcher.newest_us
        is_open = not self._matcher.waits_for_time
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

    def _released(self, shard: int, entry: Entry, batch: EventBatch) -> Iterator[Finding]:
        """Match events that need not wait any more, and let time come as far as the watermark."""
        if len(batch):
            yield from self._told(shard, entry, self._matcher.process(batch))
        watermark_us = None if self._buffer is None else self._buffer.watermark_us
        newest_us = self._matcher.newest_us
        if watermark_us is not None and (newest_us is None or watermark_us > newest_us):
            yield from self._told(shard, entry, self._matcher.pass_time(watermark_us))

    def _with_late(
        self, shard: int, entries: Sequence[Entry], batches: Sequence[EventBatch], late: NDArray[np.bool_]
    ) -> Iterator[Finding]:
        """Match batches with late events, and do with those what the stream says."""
        buffer, policy = self._buffer, self._declaration.late
        if buffer is None:
            raise RuntimeError("no event of a stream without lateness is late")
        batch, rows = EventBatch.joined(batches), np.flatnonzero(late)
        owners = np.repeat(np.arange(len(batches)), [len(part) for part in batches])
        self._counts[_LATE[policy]] += len(rows)
        if policy != "process":
            if policy == "dead_letter":
                watermarks_us = buffer.watermarks_us(batch.time_us)
                for row, owner in zip(rows.tolist(), owners[rows].tolist(), strict=True):
                    yield late_letter(shard, entries[owner], batch.slice(row, 1), int(watermarks_us[row]))
            yield from self._released(shard, entries[-1], buffer.push(batch.take(np.flatnonzero(~late))))
            return
        first = 0
        for row in rows.tolist():
            entry = entries[owners[row]]
            yield from self._released(shard, entry, buffer.push(batch.slice(first, row - first)))
            yield from self._told(shard, entry, self._matcher.process(batch.slice(row, 1)))
            first = row + 1
        yield from self._released(shard, entries[-1], buffer.push(batch.slice(first)))

    def _told(self, shard: int, entry: Entry, output: MatchOutput) -> Iterator[Finding]:
        if self.endings_told == TELLS_NOTHING:
            return
        teller = Teller(
            stream=self._declaration.name,
            patterns=output.versions,
            rules={number: version.rules for number, version in self._versions.items()},
            route=self._route,
            endings_told=self.endings_told,
        )
        yield from teller.tell(output, shard, entry)

    def keep(self, shard: int, shards: int, *, has_counts: bool) -> None:
        """Forget every key of which the home is not one shard of so many, as if its events had gone elsewhere.

        Args:
            shard: The home of the keys that stay.
            shards: How many shards there are.
            has_counts: Go on from the counts so far; else from 0.
        """

        def is_kept(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
            at_home: NDArray[np.bool_] = shard_of(hashes, shards) == shard
            return at_home

        self._matcher.keep(is_kept, has_counts=has_counts)
        if self._buffer is not None:
            self._buffer.keep(is_kept(self._buffer.key_hashes))
        if not has_counts:
            self._counts = dict.fromkeys(_LATE.values(), 0)

    def dump(self) -> tuple[dict[str, Any], list[bytes]]:
        """The state as a JSON object and sections: the matcher's bytes, and the events that wait, where some may.

        Constraints that nothing follows are left out.
        """
        in_use = self._matcher.guard_versions_in_use
        self._versions = {number: version for number, version in self._versions.items() if number in in_use}
        sections = [self._matcher.dump()]
        head: dict[str, Any] = {
            "declaration": self._declaration.to_json(),
            "constraints": [
                {"version": number, "name": version.name, "document": version.document}
                for number, version in sorted(self._versions.items())
            ],
            **({"route": self._route} if self._route else {}),
            "late": self._counts,
        }
        if self._buffer is not None:
            head["order"], waiting = self._buffer.dump()
            sections.append(waiting)
        return head, sections

    @classmethod
    def load(cls, head: Mapping[str, Any], sections: Sequence[bytes]) -> StreamState:
        """The state that ``dump`` returned.

        Raises:
            ForestallError: A part cannot be read.
        """
        declaration = StreamDeclaration.from_json(head["declaration"])
        versions = {
            saved["version"]: _Version(
                name=saved["name"], document=saved["document"], rules=rules_of(saved["document"], declaration.ties)
            )
            for saved in head["constraints"]
        }
        monitors = {number: version.rules.monitor for number, version in versions.items()}
        state = cls(declaration, Matcher.load(sections[0], monitors), versions, route=head.get("route", ""))
        state._counts.update(head.get("late", {}))
        if state._buffer is not None:
            state._buffer.load(head["order"], sections[1])
        return state
