"""Random joins in a project, run over files that are out of order within the bound, find what their documents mean.

Alarms are what a pattern makes of signals, and takes back: it says early that no B follows, as C rules B out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from service.projects import LocalProject, Results, read_project
from streams import Event, EventBatch, format_time, parse_time
from tests.shards.test_random_joins import (
    FAR,
    FAR_US,
    NAME,
    RANGE,
    RETRACTED,
    STREAMS,
    documents,
    events,
    named,
    promise_of,
    read_naively,
)

LATENESS_US = 4
SIGNALS = "signals"
POSTED = [*(name for name in STREAMS if name != "alarms"), SIGNALS]
ALARMS = [
    {"kind": "stream", "name": SIGNALS, "lateness": LATENESS_US / 1e6},
    {"kind": "constraints", "name": SIGNALS, "constraints": [{"exclusive": ["B", "C"]}]},
    {
        "kind": "pattern",
        "name": "early",
        "stream": SIGNALS,
        "text": "PATTERN early EVENT SEQ(A a, NOT B) WITHIN 30 us RETURN a.order AS order, a.name AS name "
        "INTO alarms KEY order TYPE A",
    },
]
LAST_SEEN = format_time(FAR_US - LATENESS_US)


def project_of(document: dict[str, Any], folder: Path) -> LocalProject:
    """A folder with the join and its streams, as it is read."""
    streams = [
        {"kind": "stream", "name": name, **_said(declaration.to_json()), "lateness": LATENESS_US / 1e6}
        for name, declaration in STREAMS.items()
        if name != "alarms"
    ]
    for number, one in enumerate([*streams, *ALARMS, {"kind": "join", **document}]):
        (folder / f"{number}.json").write_bytes(orjson.dumps(one))
    return LocalProject.of(read_project(folder), folder)


def _said(declaration: dict[str, Any]) -> dict[str, Any]:
    return {name: declaration[name] for name in ("keys", "end_events", "idle_timeout") if declaration.get(name)}


def shuffled(made: Sequence[Event], late_us: dict[int, int]) -> list[Event]:
    """Events of one time later than others, by less than the bound; those of one time keep their order, that of ids."""
    return sorted(made, key=lambda event: event.time_us + late_us.get(event.time_us, 0))


def signals_of(event: Event) -> list[Event]:
    """What is posted for an alarm: what leads to one, and mostly what decides that early; or what contradicts it."""
    if event.type.endswith(RETRACTED):
        return [replace(event, type="B", key=event.data["retracts"])]
    first = replace(event, type="A", key=event.id, data={**event.data, "name": event.id})
    return [first] if event.type == "End" else [first, replace(first, id=f"{event.id}c", type="C")]


def alarms_in(found: Results) -> list[tuple[str, Event]]:
    """The alarms in the order in which they are seen."""
    made = [
        Event(
            id=one["id"],
            type=one["type"],
            time_us=parse_time(one["time"]),
            key=one["key"],
            data={**one["data"], "k": one["key"], "order": one["key"], "other": one["key"]},
        )
        for one in found["events"]
        if one["stream"] == "alarms" and one["key"] != "far"
    ]
    in_order = sorted(made, key=lambda event: (event.time_us, event.type.endswith(RETRACTED), event.id))
    return [("alarms", event) for event in in_order]


def run_over(
    project: LocalProject, made: Sequence[tuple[str, Event]], late_us: dict[int, int]
) -> tuple[Results, list[tuple[str, Event]]]:
    """What a project finds, and the events that its join sees."""
    promises = [(stream, promise_of(event)) for stream, event in made if event.type == RANGE]
    posted = [one for one in made if one[1].type != RANGE]
    given_events = {name: shuffled([event for stream, event in posted if stream == name], late_us) for name in POSTED}
    batches = {
        name: EventBatch.from_events([*some, Event(id=f"far-{name}", type="Z", time_us=FAR_US, key="far", data={})])
        for name, some in given_events.items()
    }
    found = project.run(batches, promises=promises, is_open=False)
    return found, [*(one for one in made if one[0] != SIGNALS), *alarms_in(found)]


@settings(max_examples=60, deadline=None)
@given(documents(), events(), st.dictionaries(st.integers(1, 50), st.integers(0, LATENESS_US - 1), max_size=20))
def test_a_run_finds_what_a_document_means(
    document: dict[str, Any], made: list[tuple[str, Event]], late_us: dict[int, int]
) -> None:
    posted = [
        (SIGNALS if stream == "alarms" else stream, one)
        for stream, event in made
        if (stream, event.type) != ("alarms", RANGE)
        for one in (signals_of(event) if stream == "alarms" else [event])
    ]
    with TemporaryDirectory() as folder:
        project = project_of(document, Path(folder))
        while True:
            found, seen = run_over(project, posted, late_us)
            naive, left_out = read_naively(document, seen)
            if not left_out:
                break
            left_out |= {event.data["name"] for _, event in seen if event.id in left_out and "name" in event.data}
            fewer = [one for one in posted if one[1].id not in left_out]
            assume(len(fewer) < len(posted))  # else a retraction is an event of a key that is forgotten
            posted = fewer
    told = [
        (
            FAR if one["time"] >= LAST_SEEN else one["time"],  # the end of the input decides at the time that has come
            ["finished" if value == "end_of_input" else value for value in one["data"].values()],
        )
        for one in found["events"]
        if one["stream"] == NAME and one["type"] == NAME and "far-" not in str(one["data"])
    ]
    assert sorted(told, key=str) == sorted(naive.told(), key=str)
    by_id = {one["id"]: one for one in found["events"] if one["stream"] == NAME}
    back = [one for one in by_id.values() if one["type"] == NAME + RETRACTED]
    assert sorted((one["time"], named(by_id[one["data"]["retracts"]])) for one in back) == sorted(naive.told_back())
    assert len(found["dead_letters"]) == len(naive.join.violations) + len(naive.late)
