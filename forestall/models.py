"""``forestall.conformance``, ``discover`` and ``simulate``, for process models and tables of past events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Generic, TypeVar

import pyarrow as pa

from forestall.frames import Back, Frame, read_frame
from forestall.reading import ColumnNames
from forestall.rules import ModelLike, model_of
from forestall.showing import Picture, process_picture, result_html
from service import PastLog
from streams import EventBatch, KeyForm, StreamDeclaration
from streams.readers import batch_of_table
from workflows import (
    CompiledWorkflow,
    LogConformance,
    MinedConstraints,
    MiningSettings,
    SimulationSettings,
    check_log,
    check_trace,
    compile_workflow,
    mine,
    parse_duration_us,
    playable,
)
from workflows import simulate as simulate_events

FrameT = TypeVar("FrameT")

_TEXT, _TEXTS = pa.string(), pa.list_(pa.string())


def conformance(
    events: FrameT,
    model: ModelLike,
    *,
    key: KeyForm | None = None,
    time: str | None = None,
    type: str | None = None,
    zone: str | None = None,
    end_events: Collection[str] = (),
    mapping: Mapping[str, str] | None = None,
) -> ConformanceResult[FrameT]:
    """Compare past transactions with a model, as ``forestall conformance`` does.

    Args:
        events: A table of events, as ``match`` takes it.
        model: The model: text or a ``Path`` (BPMN, PNML, or a process tree as YAML).
        key: Column of the correlation key (default: ``key``).
        time: Column of the time (default: ``time``).
        type: Column of the event type (default: ``type``).
        zone: Time zone of times that name no zone (default: UTC).
        end_events: Types that end a transaction.
        mapping: Event types by the names of tasks.

    Raises:
        ForestallError: The model or the table is refused. The message says why.
    """
    compiled = compile_workflow(model_of(model, mapping)[0])
    frame, log = _past(events, ColumnNames(key=key, time=time, type=type, zone=zone), end_events)
    return ConformanceResult(compiled=compiled, log=log, found=check_log(compiled, log.traces), back=frame.back)


def discover(
    events: FrameT,
    *,
    key: KeyForm | None = None,
    time: str | None = None,
    type: str | None = None,
    zone: str | None = None,
    end_events: Collection[str] = (),
    min_support: float | None = None,
    min_confidence: float = 1.0,
    rules: bool = False,
) -> Discovery[FrameT]:
    """Discover the constraints that past transactions keep, as ``forestall discover`` does.

    Args:
        events: A table of events, as ``match`` takes it.
        key: Column of the correlation key (default: ``key``).
        time: Column of the time (default: ``time``).
        type: Column of the event type (default: ``type``).
        zone: Time zone of times that name no zone (default: UTC).
        end_events: Types that end a transaction.
        min_support: How many transactions must activate a constraint. Below 1, which share of them.
        min_confidence: Which share of the activating transactions must keep the constraint.
        rules: Whether rules of DECLARE, such as response, are discovered too.

    Raises:
        ForestallError: The table is refused. The message says why.
    """
    frame, log = _past(events, ColumnNames(key=key, time=time, type=type, zone=zone), end_events)
    settings = MiningSettings(min_support=min_support, min_confidence=min_confidence, has_rules=rules)
    return Discovery(found=mine(log.traces, settings, log.summary), back=frame.back)


def simulate(
    model: ModelLike,
    transactions: int,
    *,
    concurrent: int = 100,
    interval: str = "1 s",
    seed: int = 42,
    mapping: Mapping[str, str] | None = None,
) -> pa.Table:
    """Simulate transactions of a model as an Arrow table with the columns id, type, time and key.

    Args:
        model: The model: text or a ``Path`` (BPMN, PNML, or a process tree as YAML).
        transactions: The number of transactions.
        concurrent: The number of transactions that are open at a time.
        interval: Mean time between events, or between starts of transactions if the model has durations.
        seed: The same seed gives the same events.
        mapping: Event types by the names of tasks.

    Raises:
        ForestallError: The model is refused. The message says why.
    """
    settings = SimulationSettings(
        traces=transactions, concurrent=concurrent, interval_us=parse_duration_us(interval), key_prefix="trace-"
    )
    events = list(simulate_events(playable(model_of(model, mapping)[0]), settings, seed, None))
    columns = EventBatch.from_events(events).columns
    return pa.table({name: columns.column(name) for name in ("id", "type", "time", "key")}).cast(
        pa.schema([("id", _TEXT), ("type", _TEXT), ("time", pa.timestamp("us", "UTC")), ("key", _TEXT)])
    )


@dataclass(frozen=True, kw_only=True)
class ConformanceResult(Generic[FrameT]):
    """The conformance of past transactions to a model.

    Attributes:
        found: The counts: ``traces``, ``conforming``, ``complete``, ``fitting_share``, ``is_exact``.
    """

    compiled: CompiledWorkflow = field(repr=False)
    log: PastLog = field(repr=False)
    found: LogConformance
    back: Back[FrameT] = field(repr=False)

    @cached_property
    def transactions(self) -> FrameT:
        """A row per transaction: key, conforms, complete, and the first event outside the model, if any."""
        variants = {variant: check_trace(self.compiled, variant) for variant in set(map(tuple, self.log.traces))}
        checks = [variants[tuple(trace)] for trace in self.log.traces]
        columns = {
            "key": pa.array(self.log.keys, _TEXT),
            "conforms": pa.array([check.conforms for check in checks], pa.bool_()),
            "complete": pa.array([check.is_complete for check in checks], pa.bool_()),
            "event": pa.array([check.event for check in checks], _TEXT),
            "at": pa.array([check.at for check in checks], pa.int64()),
            "kind": pa.array([check.kind for check in checks], _TEXT),
            "allowed": pa.array([list(check.allowed) for check in checks], _TEXTS),
        }
        return self.back(pa.table(columns))

    @cached_property
    def deviations(self) -> FrameT:
        """A row per kind of deviation from the model, the most frequent first, with an example."""
        return self.back(self._deviations())

    def _deviations(self) -> pa.Table:
        deviations = self.found.deviations
        columns = {
            "event": pa.array([deviation.event for deviation in deviations], _TEXT),
            "kind": pa.array([deviation.kind for deviation in deviations], _TEXT),
            "allowed": pa.array([list(deviation.allowed) for deviation in deviations], _TEXTS),
            "broken": pa.array([[str(part) for part in deviation.broken] for deviation in deviations], _TEXTS),
            "transactions": pa.array([deviation.traces for deviation in deviations], pa.int64()),
            "example": pa.array([self.log.keys[deviation.example] for deviation in deviations], _TEXT),
        }
        return pa.table(columns)

    def picture(self) -> Picture:
        """Return the model's picture, with the number of events of each type."""
        return process_picture(self.compiled.model, Counter(chain.from_iterable(self.log.traces)))

    def _repr_html_(self) -> str:
        counts = self.found
        summary = (
            f"{counts.traces} transactions: {counts.conforming} conform ({counts.fitting_share:.1%}), "
            f"{counts.complete} of them are complete"
        )
        return result_html(summary, "deviations", self._deviations(), (), self.picture().svg)


@dataclass(frozen=True, kw_only=True)
class Discovery(Generic[FrameT]):
    """The constraints that past transactions keep."""

    found: MinedConstraints = field(repr=False)
    back: Back[FrameT] = field(repr=False)

    @cached_property
    def constraints(self) -> FrameT:
        """A row per constraint: support, confidence, violations. Constraints that follow from others are left out."""
        mined_constraints = self.found.useful
        columns = {
            "constraint": pa.array([str(mined.part) for mined in mined_constraints], _TEXT),
            "support": pa.array([mined.support for mined in mined_constraints], pa.int64()),
            "confidence": pa.array([mined.confidence for mined in mined_constraints], pa.float64()),
            "violations": pa.array([mined.violations for mined in mined_constraints], pa.int64()),
        }
        return self.back(pa.table(columns))

    @property
    def document(self) -> dict[str, Any]:
        """The constraint document, in the form that ``match`` and a service accept."""
        return self.found.to_document()

    def __repr__(self) -> str:
        log = self.found.log
        return f"<{len(self.found.useful)} constraints of {log.traces} transactions>"


def _past(events: Any, names: ColumnNames, end_events: Collection[str]) -> tuple[Frame, PastLog]:
    options = names.options(StreamDeclaration(name="file", key=names.key or "key"))
    frame = read_frame(events, time=options.columns.time or "time")
    batch = batch_of_table(frame.table, options, ())
    columns = batch.columns
    keys, types = columns.column("key").to_pylist(), columns.column("type").to_pylist()
    return frame, PastLog.of("events", zip(keys, types, batch.time_us.tolist(), strict=True), end_events)
