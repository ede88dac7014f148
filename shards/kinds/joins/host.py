"""The joins at the place of some merged events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from joins import Broken, JoinOutput, JoinRun, finished_range, keeps_rows, read_join
from shards.deciding import WAIT, Observation
from shards.errors import KeyFinished, ResultLimitReached, RetractionLate, ShardError
from shards.kinds.joins.conditions import condition_of
from shards.kinds.joins.result_kinds import JOIN_SUSPENSION
from shards.kinds.joins.rows import derived_rows, letter_body
from shards.operators import Host, KeyChoice, Origin, Result, SavedHost
from shards.results import DEAD_LETTER
from shards.rows import row_id
from streams import (
    ControlRecordError,
    Definition,
    EventBatch,
    KeyRange,
    KeysClosed,
    SpilledFiles,
    Start,
    StateLost,
    StreamDeclaration,
    format_time,
    held_summary,
)

_REMEDY = (
    "Many events of one key, such as 'unknown', multiply: leave them out, bound the inputs by closed_by: unique, "
    "{last: N} or a shorter window, or raise the limit in 'results' of the join"
)


@dataclass(frozen=True, slots=True)
class JoinResults:
    """The outputs of joins, by join."""

    stream: str
    found: tuple[tuple[JoinRun, JoinOutput], ...] = ()

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        """The events of each join, with the ends of finished keys; the stream has the join's name."""
        return ((run.name, output.passed_on) for run, output in self.found if len(output.passed_on))

    def results(self, origin: Origin) -> Iterator[Result]:
        """Result rows: derived events, dead letters and suspensions."""
        for run, output in self.found:
            if len(output.events):
                sources = output.events.columns.column("key")
                operator = run.name, run.version
                yield derived_rows(output.events, sources, (self.stream, run.name), operator, is_merged=False)
            for broken in output.broken if run.body.late == "report" else ():
                yield _letter(run, broken, origin)
            for late in output.late_retractions if run.body.late != "drop" else ():
                yield _late_retraction(run, late, origin)
            for cut in output.cut:
                yield _cut(run, cut, origin)
            for broken in output.broken if output.is_suspended and not output.excess else ():
                yield _suspension(run, broken, self.stream, origin)
            for excess in output.excess:
                yield _excess(run, excess, self.stream, origin)
            if output.lost is not None:
                yield _lost(run, output.lost, self.stream, origin)


@dataclass(slots=True)
class JoinHost(Host):
    """Host of the joins at one place; each join has a merged stream of its own, so there is one join at a place.

    Attributes:
        stream: The stream of the merged events.
        runs: The running joins by name, with their documents.
        newest_us: Newest time seen.
        spilled: The store of rows that do not fit into the memory of a join.
        changed: Outputs of the last start, until ``started`` returns them.
    """

    stream: str
    runs: dict[str, tuple[JoinRun, Mapping[str, object]]] = field(default_factory=dict)
    newest_us: int | None = None
    spilled: SpilledFiles = field(default_factory=SpilledFiles)
    changed: tuple[tuple[JoinRun, JoinOutput], ...] = ()

    @classmethod
    def of(cls, declaration: StreamDeclaration, saved: SavedHost | None, spilled: SpilledFiles) -> JoinHost:
        """A host without joins, or the saved host.

        Raises:
            ForestallError: The saved state cannot be read.
            StateLost: A file of rows that it names is missing, and ``spilled`` does not allow this (``may_be_lost``).
        """
        host = cls(declaration.name, spilled=spilled)
        if saved is not None:
            for number, (name, version, text, head) in enumerate(saved.head["joins"]):
                body = orjson.loads(text)
                prefix = f"{number}/"
                parts = saved.sections.items()
                own = {part.removeprefix(prefix): one for part, one in parts if part.startswith(prefix)}
                host.runs[name] = (
                    _loaded(JoinRun(read_join(body), name, version, spilled, condition_of), head, own),
                    body,
                )
            host.newest_us = saved.head["newest_us"]
        return host

    @property
    def names(self) -> Collection[str]:
        """The joins that run."""
        return self.runs.keys()

    @property
    def waits_for_time(self) -> bool:
        """Whether there is a join: events leave windows, and keys are finished, as time passes."""
        return bool(self.runs)

    def start(self, definition: Definition, start: Start) -> None:
        """Start a join; another version begins with an empty state, or keeps the rows of the one before (``keep``).

        Raises:
            JoinRefused: The document describes no join.
        """
        known = self.runs.get(definition.name)
        if known is not None and known[0].version == definition.version:
            return
        body = read_join(definition.body)
        is_kept = start == "keep" and known is not None and not known[0].has_stopped
        if known is None or not is_kept or not keeps_rows(known[1], definition.body):
            run = JoinRun(body, definition.name, definition.version, self.spilled, condition_of)
            self.runs[definition.name] = run, definition.body
            return
        run = known[0]
        self.changed = (*self.changed, (run, run.change(body, definition.version)))
        self.runs[definition.name] = run, definition.body

    def started(self) -> JoinResults:
        """The outputs of changed joins: events have left windows that became smaller."""
        found, self.changed = JoinResults(self.stream, self.changed), ()
        return found

    def stop(self, name: str) -> None:
        """Stop a join and drop its state.

        Raises:
            ControlRecordError: No such join runs.
        """
        if name not in self.runs:
            raise ControlRecordError(f"no join {name!r} runs on the stream {self.stream!r}")
        del self.runs[name]

    def process(self, batch: EventBatch) -> JoinResults:
        """Join events."""
        self._see(int(batch.time_us.max()))
        return self._all(lambda run: run.process(batch))

    def advance_time(self, watermark_us: int) -> JoinResults:
        """Let events leave their windows."""
        self._see(watermark_us)
        return self._all(lambda run: run.advance_time(watermark_us))

    def finish(self) -> JoinResults:
        """Finish every key."""
        return self._all(lambda run: run.finish())

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Forget all other keys."""
        for run, _ in self.runs.values():
            keys = run.keys()
            run.drop(~is_kept(keys), keys)

    def close_keys(self, record: KeysClosed) -> EventBatch:
        """Merged events by which inputs finish keys up to their closing keys; a refused join stops for good."""
        found = []
        for run, _ in self.runs.values():
            if record.refused is not None and run.body.waits:
                run.refuse(record.refused)
            numbers = {one.alias: number for number, one in enumerate(run.body.inputs) if one.waits}
            found += [
                finished_range(
                    numbers[one.input], one.input, None if one.to is None else KeyRange(high=one.to), one.time_us
                )
                for one in record.closed
                if one.input in numbers
            ]
        return EventBatch.joined(found) if found else EventBatch.from_events([])

    def observed(self) -> Iterator[Observation]:
        """The number of held events of each join with a limit of rows (``most_rows``)."""
        for run, _ in self.runs.values():
            if (allowed := run.body.most_rows) is not None and not run.has_stopped:
                names = [one.alias for one in run.body.inputs]
                summary = held_summary(run.version, run.measures()["stored"], allowed, names)
                yield Observation(stream=self.stream, decider=WAIT, summary=summary)

    @property
    def files(self) -> Collection[str]:
        """Names of the files of rows that are needed."""
        return [name for run, _ in self.runs.values() for name in run.files]

    def verify(self) -> None:
        """Compare the checksums of the files of rows.

        Raises:
            StateLost: A file is missing or damaged.
        """
        for run, _ in self.runs.values():
            run.verify()

    def measures(self) -> Mapping[str, int]:
        """Sums of the counts of the joins."""
        found: dict[str, int] = {}
        for run, _ in self.runs.values():
            for name, number in run.measures().items():
                found[name] = found.get(name, 0) + number
        return found

    def dump(self) -> SavedHost:
        """The documents and states; documents as text, because the order of the members of ``return`` matters."""
        joins: list[Any] = []
        sections: dict[str, bytes] = {}
        for number, (name, (run, body)) in enumerate(self.runs.items()):
            head, own = run.dump()
            joins.append([name, run.version, orjson.dumps(body).decode(), head])
            sections |= {f"{number}/{part}": one for part, one in own.items()}
        return SavedHost(head={"joins": joins, "newest_us": self.newest_us}, sections=sections)

    def _see(self, time_us: int) -> None:
        self.newest_us = time_us if self.newest_us is None else max(self.newest_us, time_us)

    def _all(self, step: Callable[[JoinRun], JoinOutput]) -> JoinResults:
        return JoinResults(self.stream, tuple((run, step(run)) for run, _ in self.runs.values()))


def _loaded(run: JoinRun, head: Mapping[str, Any], sections: Mapping[str, bytes]) -> JoinRun:
    """A join with its saved state; a stopped join if rows on disk are missing and may be lost (``may_be_lost``)."""
    try:
        run.load(head, sections)
        if run.spilled.may_be_lost:
            run.verify()
    except StateLost as error:
        if not run.spilled.may_be_lost:
            raise
        run = JoinRun(run.body, run.name, run.version, run.spilled, condition_of)
        run.lose(error.message)
    return run


def _lost(run: JoinRun, reason: str, stream: str, origin: Origin) -> Result:
    """The suspension of a join whose rows on disk are missing, or that would hold more rows than it may."""
    why = f"because rows that it had on disk are missing: {reason}, and no older snapshot can restore them"
    if run.is_suspended:
        why = f"as {reason}. With 'spill: true' in its memory it would hold the others on disk"
    return _suspended(run, stream, origin, why, {})


def _letter(run: JoinRun, broken: Broken, origin: Origin) -> Result:
    """The dead letter of an event that contradicts a finished key."""
    return _dead_letter(run, broken, origin, KeyFinished(f"{_said(broken)} joined nothing: {_why(run, broken)}"))


def _late_retraction(run: JoinRun, late: Broken, origin: Origin) -> Result:
    """The dead letter of a retraction whose event the join does not hold, or no longer holds."""
    error = RetractionLate(
        f"{_said(late)} had no effect: the join {run.name!r} does not hold, or no longer holds, the event "
        f"{late.event.data.get('retracts')!r} of the input {late.alias!r}: it has left its window of time, or, without "
        "one, its key is finished; a longer 'retractions' of the input keeps it for longer"
    )
    return _dead_letter(run, late, origin, error)


def _cut(run: JoinRun, cut: Broken, origin: Origin) -> Result:
    """The dead letter about cut results: the newest event of the last combination that is emitted."""
    most = run.body.results.per_event
    error = ResultLimitReached(
        f"at {_said(cut)} of the key {cut.event.key!r} there were more than {most:,} results of the join {run.name!r} "
        f"at once; the first {most:,} are emitted and the others are missing. {_REMEDY}"
    )
    return _dead_letter(run, cut, origin, error)


def _dead_letter(run: JoinRun, broken: Broken, origin: Origin, error: ShardError) -> Result:
    event, stream = broken.event, _source(run, broken)
    identity = row_id(DEAD_LETTER, stream, error.code, run.name, run.version, broken.alias, event.id, event.time_us)
    body = letter_body(event, origin, error, identity)
    return DEAD_LETTER, identity, {**body, "stream": stream, "pattern": run.name, "version": run.version}


def _suspension(run: JoinRun, broken: Broken, stream: str, origin: Origin) -> Result:
    """The suspension of a join because an event contradicts a finished key (``late: fail``)."""
    why = f"by late: fail: {_said(broken)} came, but {_why(run, broken)}"
    return _suspended(run, stream, origin, why, _about(run, broken))


def _excess(run: JoinRun, newest: Broken, stream: str, origin: Origin) -> Result:
    """The suspension of a join because its events led to too many results."""
    limits = run.body.results
    tried = "" if run.body.where is None else " (ten combinations that 'where' drops count as one)"
    why = (
        f"as its events in one shard have led to more results than it may: {limits.ahead:,} beyond {limits.average:,} "
        f"for each event{tried}, at {_said(newest)} of the key {newest.event.key!r}. {_REMEDY}"
    )
    return _suspended(run, stream, origin, why, _about(run, newest))


def _about(run: JoinRun, broken: Broken) -> dict[str, str]:
    event = broken.event
    return {
        "key": event.key,
        "source": _source(run, broken),
        "event": event.id,
        "event_type": event.type,
        "time": format_time(event.time_us),
    }


def _suspended(run: JoinRun, stream: str, origin: Origin, why: str, about: Mapping[str, str]) -> Result:
    """The suspension of a join; its id is the same in all shards, so several shards report one suspension."""
    identity = row_id(JOIN_SUSPENSION, stream, run.name, run.version)
    body = {
        "type": JOIN_SUSPENSION.delivered_as,
        "id": identity,
        "operator": "join",
        "stream": stream,
        "pattern": run.name,
        "version": run.version,
        **about,
        "shard": origin.shard,
        "reason": f"the join {run.name!r} (version {run.version}) is suspended {why}. It emits nothing until another "
        "version is registered or it is resumed, and begins from nothing then",
    }
    return JOIN_SUSPENSION, identity, body


def _said(broken: Broken) -> str:
    return f"event {broken.event.id!r} of type {broken.event.type!r}"


def _why(run: JoinRun, broken: Broken) -> str:
    closes = next(one for one in run.body.inputs if one.alias == broken.alias)
    fault = (
        "the event is later than any was before it, by its key, or the keys have begun again"
        if closes.waits
        else ("closed_by of the input is too early, or the event is late")
    )
    return (
        f"the input {broken.alias!r} of the join {run.name!r} had said that no more events of the key "
        f"{broken.event.key!r} come; {fault}"
    )


def _source(run: JoinRun, broken: Broken) -> str:
    """The stream that an event came from."""
    return next(one.stream for one in run.body.inputs if one.alias == broken.alias)
