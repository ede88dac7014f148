"""The join at the place of its merged events."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from joins import (
    Broken,
    JoinBody,
    JoinOutput,
    JoinRun,
    finished_range,
    held_summary,
    input_name,
    keeps_rows,
    readings_of,
)
from shards.errors import ShardError
from shards.hosts.keyed_host import KeyedHost, Operator
from shards.kinds.derived_rows import derived_rows
from shards.kinds.joins.conditions import body_of, condition_of
from shards.kinds.joins.errors import KeyFinished, ResultLimitReached, RetractionLate
from shards.kinds.joins.result_kinds import JOIN_SUSPENSION
from shards.kinds.joins.rows import event_letter
from shards.kinds.joins.sources import WAIT
from shards.operators import KeyChoice, Observation, Origin, Output, Result, SavedHost
from shards.rows import row_id
from streams import (
    Definition,
    EventBatch,
    KeyRange,
    KeysClosed,
    SpilledFiles,
    StateLost,
    StreamDeclaration,
    format_time,
)
from streams.tables import Tables

_REMEDY = (
    "Many events of one key, such as 'unknown', multiply: leave them out, bound the inputs by closed_by: unique, "
    "{last: N} or a shorter window, or raise the limit in 'results' of the join"
)


@dataclass(frozen=True, slots=True)
class JoinResults(Output):
    """The output of a join for a batch of merged events, or for an advance of time.

    Merged events are the events of all inputs of a join, in one inner stream.
    """

    stream: str
    run: JoinRun
    output: JoinOutput

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        """Yield the events of the join's own stream: derived events, together with the ends of finished keys."""
        if len(self.output.passed_on):
            yield self.run.name, self.output.passed_on

    def results(self, origin: Origin) -> Iterator[Result]:
        run, output = self.run, self.output
        if len(output.events):
            yield derived_rows(output.events, self.stream, run.name, run.version)
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


class RunningJoin(Operator):
    """A running join. It reads its merged events: the events of all its inputs, in one inner stream.

    ``spilled`` is the store for rows that exceed the join's memory.
    """

    waits_for_time = True  # as time passes, events leave windows and keys are finished

    def __init__(self, definition: Definition, declaration: StreamDeclaration, spilled: SpilledFiles) -> None:
        super().__init__(definition, declaration)
        self._spilled = spilled
        self._tables = Tables()
        self._run = self._begun()

    def _begun(self) -> JoinRun:
        definition = self.definition
        conditions = partial(condition_of, tables=lambda: self._tables)
        return JoinRun(self._body_of(definition), definition.name, definition.version, self._spilled, conditions)

    def _body_of(self, definition: Definition) -> JoinBody:
        return body_of(definition.body, lambda: self._tables)

    def use_tables(self, tables: Tables) -> None:
        self._tables = tables

    @property
    def is_decided_by_end(self) -> bool:
        """Whether the join reports absent inputs or totals at the end of a finite input."""
        return bool(self._run.body.outer) or self._run.body.emit != "each"

    def load(self, saved: SavedHost) -> None:
        """Restore the state that ``dump`` saved.

        If rows on disk are lost, this raises ``StateLost``. With ``spilled.may_be_lost``, the join starts empty and is
        suspended instead.
        """
        try:
            self._run.load(saved.head, saved.sections)
            if self._spilled.may_be_lost:
                self._run.rows.verify()
        except StateLost as error:
            if not self._spilled.may_be_lost:
                raise
            self._run = self._begun()
            self._run.lose(error.message)

    def dump(self) -> SavedHost:
        head, sections = self._run.dump()
        return SavedHost(head=head, sections=sections)

    def continue_as(self, definition: Definition) -> JoinResults | None:
        """Switch to another version and keep the rows, or return None if the other version cannot use the rows.

        The new version may have smaller windows. Events outside these windows are then removed.
        """
        body = self._body_of(definition)
        if self._run.has_stopped or not keeps_rows(self._run.body, body):
            return None
        self.definition = definition
        return self._results(self._run.change(body, definition.version))

    def process(self, batch: EventBatch) -> JoinResults:
        return self._results(self._run.process(batch))

    def advance_time(self, watermark_us: int) -> JoinResults:
        return self._results(self._run.advance_time(watermark_us))

    def finish(self) -> JoinResults:
        return self._results(self._run.finish())

    def _results(self, output: JoinOutput) -> JoinResults:
        return JoinResults(self.declaration.name, self._run, output)

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        keys = self._run.keys()
        self._run.drop(~is_kept(keys), keys)
        if not has_counts:
            self._run.clear_counts()

    def close_keys(self, record: KeysClosed) -> EventBatch:
        """Return merged events that finish the keys closed by a decider, for each input up to its own key.

        A decision about another version is ignored, unless both versions read the input in the same way. If the decider
        refuses the join, because the join retains too many events, the join stops for good.
        """
        body = self._run.body
        if record.refused is not None and body.waits and record.version in (None, self._run.version):
            self._run.refuse(record.refused)
        inputs = zip(body.inputs, readings_of(body), strict=True)
        own_inputs = {
            join_input.alias: (number, reading)
            for number, (join_input, reading) in enumerate(inputs)
            if join_input.waits
        }
        batches = [
            finished_range(
                number,
                input_name(closed_input.input, reading),
                None if closed_input.to is None else KeyRange(high=closed_input.to),
                closed_input.time_us,
            )
            for closed_input in record.closed
            for number, reading in [own_inputs.get(closed_input.input, (0, None))]
            if reading is not None and closed_input.reading in ("", reading)
        ]
        return EventBatch.joined(batches) if batches else EventBatch.from_events([])

    def observed(self) -> Iterator[Observation]:
        """Yield how many events the join retains, for the decider, if the join has a limit (``most_rows``)."""
        run = self._run
        if (allowed := run.body.most_rows) is not None and not run.has_stopped:
            names = [join_input.alias for join_input in run.body.inputs]
            summary = held_summary(run.version, run.measures()["stored"], allowed, names)
            yield Observation(stream=self.declaration.name, decider=WAIT, summary=summary)

    @property
    def files(self) -> Collection[str]:
        return self._run.rows.files

    def verify(self) -> None:
        self._run.rows.verify()

    def measures(self) -> Mapping[str, int]:
        return self._run.measures()


class JoinHost(KeyedHost):
    """Host of one join. Each join reads an inner stream of its own, so each join also has a place of its own."""

    has_traces = False
    saved_as = "joins"


def _lost(run: JoinRun, reason: str, stream: str, origin: Origin) -> Result:
    """Return the suspension of a join that has lost rows on disk, or would retain more rows than its limit."""
    why = f"because rows that it had on disk are missing: {reason}, and no older snapshot can restore them"
    if run.is_suspended:
        why = f"as {reason}. With 'spill: true' in its memory it would hold the others on disk"
    return _suspended(run, stream, origin, why, {})


def _letter(run: JoinRun, broken: Broken, origin: Origin) -> Result:
    return _dead_letter(run, broken, origin, KeyFinished(f"{_words_of(broken)} joined nothing: {_why(run, broken)}"))


def _late_retraction(run: JoinRun, late: Broken, origin: Origin) -> Result:
    error = RetractionLate(
        f"{_words_of(late)} had no effect: the join {run.name!r} does not hold, or no longer holds, the event "
        f"{late.event.data.get('retracts')!r} of the input {late.alias!r}: it has left its window of time, or, without "
        "one, its key is finished; a longer 'retractions' of the input keeps it for longer"
    )
    return _dead_letter(run, late, origin, error)


def _cut(run: JoinRun, cut: Broken, origin: Origin) -> Result:
    most = run.body.results.per_event
    error = ResultLimitReached(
        f"at {_words_of(cut)} of the key {cut.event.key!r} there were more than {most:,} results of the join "
        f"{run.name!r} at once; the first {most:,} are emitted and the others are missing. {_REMEDY}"
    )
    return _dead_letter(run, cut, origin, error)


def _dead_letter(run: JoinRun, broken: Broken, origin: Origin, error: ShardError) -> Result:
    return event_letter(broken.event, origin, error, (_source(run, broken), run.name, run.version, broken.alias))


def _suspension(run: JoinRun, broken: Broken, stream: str, origin: Origin) -> Result:
    why = f"by late: fail: {_words_of(broken)} came, but {_why(run, broken)}"
    return _suspended(run, stream, origin, why, _about(run, broken))


def _excess(run: JoinRun, newest: Broken, stream: str, origin: Origin) -> Result:
    limits = run.body.results
    tried = "" if run.body.where is None else " (ten combinations that 'where' drops count as one)"
    why = (
        f"as its events in one shard have led to more results than it may: {limits.ahead:,} beyond {limits.average:,} "
        f"for each event{tried}, at {_words_of(newest)} of the key {newest.event.key!r}. {_REMEDY}"
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
    """Return the suspension of a join. All shards give it the same id, so that it is reported once."""
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


def _words_of(broken: Broken) -> str:
    return f"event {broken.event.id!r} of type {broken.event.type!r}"


def _why(run: JoinRun, broken: Broken) -> str:
    closing_input = next(join_input for join_input in run.body.inputs if join_input.alias == broken.alias)
    fault = (
        "the event is later than any was before it, by its key, or the keys have begun again"
        if closing_input.waits
        else ("closed_by of the input is too early, or the event is late")
    )
    return (
        f"the input {broken.alias!r} of the join {run.name!r} had said that no more events of the key "
        f"{broken.event.key!r} come; {fault}"
    )


def _source(run: JoinRun, broken: Broken) -> str:
    return next(join_input.stream for join_input in run.body.inputs if join_input.alias == broken.alias)
