"""Runs of rules over finite events in this process, in one shard that is fed like a shard of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from service.errors import ProjectRefused
from service.runs.plan import RunPlan
from service.runs.results import Results, results_of
from shards import (
    DEAD_LETTER,
    KINDS_BY_NAME,
    DocumentKind,
    InlineShards,
    Kind,
    OutputRow,
    Renderer,
    RowBlock,
    ShardState,
    own_results,
    rows_of,
)
from streams import AutoLateness, ControlRecord, Definition, EventBatch, PatternOn

_Counts: TypeAlias = Mapping[str, Mapping[str, int | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """The measured lateness of a stream at the end of a run: the bound in ``seconds``, and how often it changed.

    ``late`` is the number of late events.
    """

    seconds: float
    changes: int
    late: int


class InlineRun:
    """A run in this process. Unless ``starts_patterns``, patterns see no events until a control record starts them.

    Raises ``ProjectRefused`` if patterns feed each other in a cycle, or feed a stream with posted events.
    """

    def __init__(
        self,
        plan: RunPlan,
        *,
        kinds: Mapping[str, Kind] = KINDS_BY_NAME,
        renderer: Renderer = own_results,
        starts_patterns: bool = True,
    ) -> None:
        self._plan = plan
        self._shards = InlineShards(1, kinds)
        self._shards.states[0].render(renderer)
        self._rows: list[RowBlock] = []
        self._letters: Counter[tuple[str, str]] = Counter()
        self._reasons: dict[tuple[str, str], str] = {}  # of the first dead letter of each stream and code
        self._waits = any(operator.body.get("wait") for operator in plan.operators)
        for stream, record in plan.records():
            if starts_patterns or not isinstance(record, PatternOn):
                self._shards.append_record(stream, record)
        self._require_accepted()

    def _require_accepted(self) -> None:
        refused = [orjson.loads(row.body)["reason"] for block in self._shards.settle() for row in block]
        if refused:
            raise ProjectRefused.of(refused)

    def feed(self, stream: str, events: EventBatch) -> None:
        """Feed events of a stream. The order in which streams are fed does not matter."""
        if not self._waits and not isinstance(self._plan.declarations[stream].lateness, AutoLateness):
            self._shards.feed(stream, events)
            for route, path in self._plan.routes(stream).items():
                self._shards.feed(stream, events.keyed_by(path), route)
            return
        self._rows += self._shards.feed_and_decide(stream, events, self._plan.routes(stream))

    def append(self, stream: str, events: EventBatch, route: str) -> None:
        """Feed events whose key is a value of the further key ``route``."""
        self._shards.feed(stream, events, route)

    def settle(self) -> None:
        """Match all events that have been fed."""
        self._rows += self._shards.settle()

    def append_record(self, stream: str, record: ControlRecord) -> None:
        """Feed a control record of a stream. A promise about a range of keys may be fed at any time."""
        self._shards.append_record(stream, record)

    @property
    def state(self) -> ShardState:
        """The state of the shard, which callers must not change."""
        return self._shards.states[0]

    @property
    def measured(self) -> dict[str, MeasuredRun]:
        """The measured bound of each stream with ``lateness: auto``."""
        measures = self._shards.states[0].measures()
        bounds = {name: measures[name].get("lateness_us") or 0 for name in self._plan.declarations}
        return measured_of(self._plan, measures, bounds, self._shards.decided)

    @property
    def late(self) -> dict[str, dict[str, int]]:
        """The number of late events by stream and treatment. Streams without late events are left out.

        The derived streams between the parts of an operator, such as ``NAME.inputs``, are included.
        """
        counts = self._shards.states[0].measures()
        # events of a further key, under ``<stream>@<key>``, are counted at the correlation key already
        by_stream = {name: _late_by_action(numbers) for name, numbers in sorted(counts.items()) if "@" not in name}
        return {name: numbers for name, numbers in by_stream.items() if numbers}

    @property
    def dead_letters(self) -> dict[str, dict[str, int]]:
        """The number of dead letters by stream and code. Read it after ``results``."""
        by_stream: dict[str, dict[str, int]] = {}
        for (stream, code), number in sorted(self._letters.items()):
            by_stream.setdefault(stream, {})[code] = number
        return by_stream

    @property
    def losses(self) -> dict[str, str]:
        """A sentence for each stream with late events or dead letters. Read it after ``results``."""
        late, letters = self.late, self.dead_letters
        reasons = {
            name: [f"{number} {code} ({self._reasons[name, code]})" for code, number in counts.items()]
            for name, counts in letters.items()
        }
        return {name: _loss(late.get(name, {}), reasons.get(name, [])) for name in sorted({*late, *letters})}

    @property
    def waiting(self) -> dict[str, Mapping[str, Mapping[str, Any]]]:
        """The measurements of operators with ``wait: auto``, by operator and input."""
        states = {(stream, decider): state for stream, decider, state in self._shards.decider_states()}
        return waiting_of(self._plan, self._shards.states[0].measures(), states)

    @property
    def unkeyed(self) -> dict[str, Sequence[str]]:
        """Sentences about inputs whose events lack a usable key, by operator."""
        return unkeyed_of(self._plan, self._shards.states[0].measures())

    def rows(self, *, is_open: bool) -> list[OutputRow]:
        """Finish the run, and return all its rows. ``is_open`` has the same meaning as for ``results``."""
        self._rows += self._shards.pause() if is_open else self._shards.finish()
        return rows_of(self._rows)

    def results(self, *, is_open: bool) -> Results:
        """Finish the run, and return its results. If ``is_open``, transactions continue after the last event."""
        rows = self.rows(is_open=is_open)
        letters = [orjson.loads(row.body) for row in rows if row.kind == DEAD_LETTER.name]
        self._letters = Counter((letter["stream"], letter["code"]) for letter in letters)
        self._reasons = {(letter["stream"], letter["code"]): letter["reason"] for letter in reversed(letters)}
        return results_of(self._plan, ((row.kind, orjson.loads(row.body)) for row in rows))


def measured_of(
    plan: RunPlan, counts: _Counts, bounds_us: Mapping[str, int], changes: Mapping[str, int]
) -> dict[str, MeasuredRun]:
    """Return the measured bound of each stream with ``lateness: auto``.

    ``counts`` has the counters of each stream over all shards, and ``bounds_us`` the final bound of each stream.
    """
    return {
        name: MeasuredRun(
            seconds=bounds_us[name] / 1_000_000,
            changes=changes.get(name, 0),
            late=sum(_late_by_action(counts.get(name, {})).values()),
        )
        for name, declaration in plan.declarations.items()
        if isinstance(declaration.lateness, AutoLateness)
    }


def waiting_of(
    plan: RunPlan, counts: _Counts, states: Mapping[tuple[str, str], Mapping[str, Any]]
) -> dict[str, Mapping[str, Mapping[str, Any]]]:
    """Return the measurements of operators with ``wait: auto``, by operator and input.

    ``counts`` has the counters of each stream over all shards. ``states`` has the states of deciders, by the name of
    the stream and of the decider.
    """
    measurements = {}
    for kind, operator, counters in _documents(plan, counts):
        state = None if kind.decider is None else states.get((operator.inputs[0].stream, kind.decider.name))
        if inputs := kind.waiting(operator, counters, state):
            measurements[operator.name] = inputs
    return measurements


def unkeyed_of(plan: RunPlan, counts: _Counts) -> dict[str, Sequence[str]]:
    """Return sentences about inputs whose events lack a usable key, by operator.

    ``counts`` has the counters of each stream.
    """
    return {
        operator.name: sentences
        for kind, operator, counters in _documents(plan, counts)
        if (sentences := kind.unkeyed(operator, counters))
    }


def _documents(plan: RunPlan, counts: _Counts) -> Iterator[tuple[DocumentKind, Definition, dict[str, int]]]:
    for operator in plan.operators:
        if isinstance(kind := KINDS_BY_NAME[operator.kind], DocumentKind):
            of_stream = counts.get(operator.inputs[0].stream, {})
            yield (
                kind,
                operator,
                {name.removeprefix(f"{operator.kind}_"): count or 0 for name, count in of_stream.items()},
            )


_LATE = {"late_dropped": "dropped", "late_dead_lettered": "dead_lettered", "late_processed": "processed"}


def _late_by_action(measures: Mapping[str, int | None]) -> dict[str, int]:
    return {action: number for name, action in _LATE.items() if (number := measures.get(name))}


def _loss(late: Mapping[str, int], letters: Sequence[str]) -> str:
    parts = []
    if late:
        actions = ", ".join(f"{number} {action.replace('_', '-')}" for action, number in late.items())
        parts.append(f"late events: {actions}; a larger lateness of the stream waits longer for them")
    if letters:
        parts.append(f"dead letters: {', '.join(letters)}")
    return "; ".join(parts)
