"""``forestall.run``, which runs a project over tables of events in this process."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from forestall.errors import FrameRefused, ResultsNotKept
from forestall.frames import Back, read_frame
from forestall.match_columns import MatchForm, free_name
from forestall.match_result import ResultLists
from forestall.reading import ColumnNames
from forestall.row_columns import OUTPUTS, table_of_rows, value_column
from service.projects import LocalProject, read_project
from service.runs import InlineRun
from streams import did_you_mean, listed, parse_time, time_column
from streams.compiling import compile_kernels
from streams.readers import batch_of_table

_EVENTS = "events"
_COUNTED = {_EVENTS: "derived_events", "endings": "terminations", "alerts": "matches"}


def run(
    project: str | Path,
    events: Mapping[str, Any],
    *,
    outputs: Collection[str] | None = None,
    is_open: bool = False,
) -> RunResult:
    """Run a project over tables of events. The results are those of ``forestall run`` on the same events.

    Args:
        project: Folder of the project's documents.
        events: Tables of events, as for ``match``, by stream. The stream's ``key`` and ``mapping`` name the columns.
        outputs: Derived streams whose events are kept (default: all).
        is_open: Whether transactions continue after the last event (default: they end with it).

    Raises:
        ForestallError: A document or a table is refused. The message says why.
    """
    folder = Path(project)
    local = LocalProject.of(read_project(folder), folder)
    kept_streams = _kept(outputs, local)
    for name in events:
        if local.stream(name).derived:
            raise FrameRefused(f"the events of {name!r} are derived; give those that they are made of")
    options = {name: ColumnNames().options(local.stream(name)) for name in events}
    frames = {name: read_frame(table, time=options[name].columns.time or "time") for name, table in events.items()}
    if not frames:
        posted = [name for name, stream in local.streams.items() if not stream.derived]
        raise FrameRefused(f"no events: give a table for one of the streams {listed(posted)}")
    batches = {name: batch_of_table(frame.table, options[name]) for name, frame in frames.items()}
    compile_kernels(local.exercises())
    inline_run = local.fed(batches)
    lists = inline_run.results(is_open=is_open)
    events_of = {name: [batch] for name, batch in batches.items()} | local.derived_events(lists)
    return RunResult(
        lists=lists,
        form=_form(local),
        back=next(iter(frames.values())).back,
        outputs=kept_streams,
        notices=_notices(inline_run, local.notices, inline_run.unkeyed, local.event_notices(events_of)),
        stats={
            "events": sum(map(len, batches.values())),
            **{_COUNTED.get(name, name): len(lists[name]) for name in lists},
        },
    )


@dataclass(frozen=True, kw_only=True)
class RunResult(ResultLists[Any]):
    """The results of a project over tables of events, as frames of the same kind as the first table.

    All rows name their stream.

    Attributes:
        outputs: The derived streams whose events were kept.
        notices: Probable mistakes, lost events and members without effect, in words.
        stats: The number of events, and of results by list.
    """

    lists: Mapping[str, list[dict[str, Any]]] = field(repr=False)
    form: MatchForm = field(repr=False)
    back: Back[Any] = field(repr=False)
    outputs: tuple[str, ...]
    notices: tuple[str, ...]
    stats: Mapping[str, int]

    @cached_property
    def suppressed(self) -> Any:
        """A row per suppressed alert, with the columns of ``matches``."""
        return self._kept("suppressed_alerts")

    @cached_property
    def streams(self) -> Mapping[str, Any]:
        """The events of each derived stream: id, type, time, key, and a column for each attribute."""
        return {name: self.back(_event_table(name, self.lists[_EVENTS])) for name in self.outputs}

    def stream(self, name: str) -> Any:
        """Return the events of a derived stream.

        Raises:
            ResultsNotKept: The stream is not among the outputs.
        """
        if name not in self.outputs:
            raise ResultsNotKept(
                f"{name!r} is not a derived stream that was kept{did_you_mean(name, self.outputs)}", output=name
            )
        return self.streams[name]

    def _kept(self, output: str) -> Any:
        name = {"matches": "alerts"}.get(output) or OUTPUTS.get(output, output)
        return self.back(table_of_rows(self.lists[name], name, self.form, has_stream=True))

    def __repr__(self) -> str:
        counts = [f"{count} {name}" for name, count in self.stats.items() if count]
        return f"<{', '.join(counts) or 'no events'}>"


def _kept(outputs: Collection[str] | None, project: LocalProject) -> tuple[str, ...]:
    derived = project.derived()
    for name in outputs or ():
        if name not in derived:
            raise FrameRefused(f"outputs: {name!r} is not a derived stream{did_you_mean(name, derived)}")
    return tuple(derived if outputs is None else outputs)


def _form(project: LocalProject) -> MatchForm:
    patterns = [
        routed_pattern.pattern
        for routed_patterns in project.plan.patterns.values()
        for routed_pattern, _ in routed_patterns
    ]
    return MatchForm.of(patterns, lambda _: "any", pa.string())


def _notices(inline_run: InlineRun, *by_operator: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    sentences = [(name, sentence) for by_name in by_operator for name, all_of in by_name.items() for sentence in all_of]
    return tuple(f"{name}: {sentence}" for name, sentence in [*sentences, *inline_run.losses.items()])


def _event_table(name: str, events: list[dict[str, Any]]) -> pa.Table:
    stream_events = [event for event in events if event["stream"] == name]
    texts = {member: pa.array([event[member] for event in stream_events], pa.string()) for member in ("id", "type")}
    times = time_column(np.array([parse_time(event["time"]) for event in stream_events], np.int64))
    columns = {**texts, "time": times, "key": pa.array([event["key"] for event in stream_events], pa.string())}
    for attribute in dict.fromkeys(attribute for event in stream_events for attribute in event["data"]):
        values = value_column([event["data"].get(attribute) for event in stream_events])
        columns[free_name(attribute, list(columns))] = values
    return pa.table(columns)
