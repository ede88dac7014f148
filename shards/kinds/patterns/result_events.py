"""Timeouts, early terminations and deviations as events, for derived streams.

They are ordered like matches with INTO: first by the event, or the advance of time, that decided a result, then by time
and id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from nfa import LaneOutput, MatchOutput
from shards.kinds.patterns.result_kinds import ENDING, TIMEOUT
from shards.kinds.patterns.results import PatternResults
from shards.operators import Result
from shards.rows import ResultRows
from streams import EARLIEST_US, LATEST_US, EventBatch, column_of


def result_events(
    name: str, output: MatchOutput, results_of: PatternResults, passed_us: NDArray[np.int64], event_type: str
) -> EventBatch | None:
    """Return the results of one kind as events of the type ``event_type``, or None if there are no such results.

    ``name`` is one of ``AS_EVENTS``. ``results_of`` renders the results. ``passed_us`` is the event time reached at
    each event of the batch.
    """
    rows = []
    for lane in output.lanes:
        places, times_us, bodies = _of_lane(name, lane, results_of)
        is_event = places >= 0
        places = np.where(is_event, places, np.searchsorted(passed_us, times_us))
        columns = places.tolist(), is_event.tolist(), times_us.clip(EARLIEST_US, LATEST_US).tolist(), bodies
        for *place, body in zip(*columns, strict=True):
            attributes = {member: value for member, value in body.items() if member not in ("id", "type")}
            rows.append((*place, body["id"], body["key"], orjson.dumps(attributes)))
    if not rows:
        return None
    _, _, times, ids, keys, data = (list(column) for column in zip(*sorted(rows), strict=True))
    return EventBatch.from_columns(ids, [event_type] * len(ids), np.array(times, np.int64), keys, data)


def _of_lane(
    name: str, lane: LaneOutput, results_of: PatternResults
) -> tuple[NDArray[np.int64], NDArray[np.int64], Iterable[Mapping[str, Any]]]:
    """Return three columns of a per-key matcher's results: place, time and body.

    The place is the index of the event that decided the result, or -1 if time decided it. The body contains the event's
    data.
    """
    lane_output = MatchOutput((lane,))
    if name == TIMEOUT.plural:
        times_us = lane.timeouts.detected_us
        return np.full(len(times_us), -1), times_us, [body for _, _, body in results_of.timeouts(lane_output)]
    is_ending = name == ENDING.plural
    rows = (lane.ending_rows if is_ending else lane.deviation_rows)[:, 0]
    results = results_of.endings(lane_output) if is_ending else results_of.deviations(lane_output)
    data = lane.batch.columns.column("data").take(column_of(rows)).to_pylist()
    bodies = (body for result in results for body in _bodies(result))
    with_data = [
        {**body, "event_data": orjson.Fragment(event_data)} for body, event_data in zip(bodies, data, strict=True)
    ]
    return lane.places_of(rows), lane.batch.time_us[rows], with_data


def _bodies(result: Result) -> Iterator[Mapping[str, Any]]:
    return map(orjson.loads, result.bodies.to_pylist()) if isinstance(result, ResultRows) else iter((result[2],))
