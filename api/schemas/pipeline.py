"""The state of the pipeline and the health of the service on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from api.wire import From, Time, WireModel
from service import Limits, PipelineOverview


class VolumeModel(WireModel):
    """An amount of log content: entries, events and bytes."""

    entries: int = Field(description="Log entries that hold events.")
    events: int = Field(description="Number of events; an event with several keys counts once for each key.")
    bytes: int = Field(description="Bytes of the entries.")


class BacklogModel(WireModel):
    """The backlog: events that are accepted, but not matched yet."""

    waiting_volume: Annotated[VolumeModel, From("backlog.waiting")] = Field(
        description="In the log and not matched yet."
    )
    appended_volume: Annotated[VolumeModel, From("backlog.appended")] = Field(
        description="Appended to the log since it began."
    )
    matched_volume: Annotated[VolumeModel, From("backlog.matched")]
    per_second: Annotated[VolumeModel | None, From("rate")] = Field(
        description="Matched per second over the last minute."
    )
    max_events: int = Field(description="Events are refused (429) when the backlog is larger.")
    max_bytes: int = Field(description="Events are refused (429) when the backlog has more bytes.")


class BatchModel(WireModel):
    """A micro-batch of the pipeline."""

    batch: int
    started_at: Time
    duration_s: float
    parts_s: dict[str, float] = Field(
        description="Time of the micro-batch by part: plan (waiting for new entries), read (reading the log, moving "
        "rows), match, state (loading and saving states), commit (writing results), other."
    )
    entries: int = Field(description="Log entries, control records included.")
    events: int | None
    bytes: int
    result_counts: Annotated[dict[str, int], From("rows")] = Field(description="The number of results, by kind.")
    shard_count: Annotated[int, From("shards")] = Field(description="Shards that had new entries.")

    @classmethod
    def from_domain(cls, progress: Mapping[str, Any]) -> Self:
        return cls.copying(progress, parts_s={name: spent / 1_000 for name, spent in progress["parts_ms"].items()})


class StreamStateModel(WireModel):
    """The state of a stream, over all shards."""

    name: str
    derived: Annotated[bool, From("is_derived")] = Field(
        False, description="Whether patterns with INTO make its events."
    )
    watermark: Time | None = Field(description="Event time of the slowest shard.")
    watermark_lag_s: Annotated[float | None, From("lag_s")] = Field(
        description="Lag of the watermark behind the wall clock."
    )
    open_traces: int | None
    held_partial_matches: Annotated[int | None, From("held")]
    waiting_events: Annotated[int | None, From("waiting")] = Field(
        description="Events that wait in the reorder buffer."
    )
    late_events: Annotated[dict[str, int], From("late")] = Field(description="Late events, by what was done with them.")
    events_without_key: Annotated[int | None, From("without_key")] = Field(
        None,
        description="Events of a join's inputs without a usable key, which join nothing; `GET "
        "/v1/joins/{name}/explanation` names the inputs.",
    )


class ExecutorsModel(WireModel):
    """The Spark executors of a cluster."""

    running: int
    missing: list[str] = Field(
        description="The machine of each executor that ran since the pipeline started and no longer runs."
    )


class PipelineModel(WireModel):
    """The state of the pipeline."""

    running_since: Annotated[Time | None, From("running_since_us")]
    alive_at: Time | None = Field(description="When it last reported.")
    backlog: BacklogModel
    last_batch: BatchModel | None
    batches: int = Field(description="Micro-batches so far.")
    batch_parts_s: Annotated[dict[str, float], From("seconds")] = Field(
        description="Total time of the micro-batches, by part."
    )
    shard_count: Annotated[int, From("shards")] = Field(description="Shards that have reported.")
    state_bytes: int | None = Field(description="Bytes of the saved states.")
    streams: list[StreamStateModel]
    executors: ExecutorsModel | None = Field(None, description="Null where Spark is local.")

    @classmethod
    def of(cls, overview: PipelineOverview, limits: Limits) -> Self:
        most = {"max_events": limits.max_backlog_events, "max_bytes": limits.max_log_bytes}
        last = None if overview.last_batch is None else BatchModel.from_domain(overview.last_batch)
        return cls.copying(overview, backlog=BacklogModel.copying(overview, **most), last_batch=last)


class ShardPlanModel(WireModel):
    """A shard in the plan: the task that holds it, and how far its log is matched."""

    shard: int
    task: str | None = Field(
        description="The continuous task that holds the shard, or the process of its last micro-batch."
    )
    position: str = Field(description="Position up to which its log is matched.")
    lag_s: float = Field(description="How much older the entry at this position is than the newest one.")


class OperatorCostModel(WireModel):
    """The results of one operator of an engine, per event and per second."""

    name: str
    selectivity: float | None = Field(description="Results per event of the stream.")
    results_per_s: float


class EngineCostModel(WireModel):
    """The cost of an engine, which runs the operators of one kind on one key of a stream, over all shards."""

    stream: str = Field(description="Name of the stream; with a further key, `<stream>@<key>`.")
    kind: str
    events_per_s: float
    cost_us: float | None = Field(
        description="Processor time per event in microseconds, results included, of all operators of the kind together."
    )
    selectivity: float | None = Field(description="Results per event.")
    priority: float | None = Field(
        description="`(1 - selectivity) / cost_us`: the events that a microsecond of work filters out."
    )
    cores: float = Field(description="Processor time per second.")
    operators: list[OperatorCostModel] = Field(description="At most 200.")


class TaskModel(WireModel):
    """A Spark task or a process that matches."""

    name: str
    shards: list[int]


class PlanModel(WireModel):
    """The plan of the pipeline: its tasks, its shards and the cost of its engines."""

    runtime: str = Field(description="`continuous` or `micro-batch`.")
    policy: str = Field(description="How the next shard, and within a step the next stream, is chosen.")
    tasks: list[TaskModel]
    shards: list[ShardPlanModel]
    engines: list[EngineCostModel]


class Health(WireModel):
    """The API process is up."""

    status: Literal["ok"] = "ok"
    version: str = Field(default_factory=lambda: version("forestall"), description="The release that answers.")


class Ready(WireModel):
    """The service accepts events and matches them."""

    status: Literal["ready"] = "ready"
