"""Random joins in a project, run over files that are out of order within the bound, find what their documents mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from service.projects import LocalProject, read_project
from streams import Event, EventBatch, format_time
from tests.shards.test_random_joins import (
    FAR,
    FAR_US,
    NAME,
    RANGE,
    STREAMS,
    documents,
    events,
    promise_of,
    read_naively,
)

LATENESS_US = 4
LAST_SEEN = format_time(FAR_US - LATENESS_US)


def project_of(document: dict[str, Any], folder: Path) -> LocalProject:
    """A folder with the join and its streams, as it is read."""
    streams = [
        {"kind": "stream", "name": name, **_said(declaration.to_json()), "lateness": LATENESS_US / 1e6}
        for name, declaration in STREAMS.items()
    ]
    for number, one in enumerate([*streams, {"kind": "join", **document}]):
        (folder / f"{number}.json").write_bytes(orjson.dumps(one))
    return LocalProject.of(read_project(folder), folder)


def _said(declaration: dict[str, Any]) -> dict[str, Any]:
    return {name: declaration[name] for name in ("keys", "end_events", "idle_timeout") if declaration.get(name)}


def shuffled(made: Sequence[Event], late_us: dict[int, int]) -> list[Event]:
    """Events of one time later than others, by less than the bound; those of one time keep their order, that of ids."""
    return sorted(made, key=lambda event: event.time_us + late_us.get(event.time_us, 0))


@settings(max_examples=60, deadline=None)
@given(documents(), events(), st.dictionaries(st.integers(1, 50), st.integers(0, LATENESS_US - 1), max_size=20))
def test_a_run_finds_what_a_document_means(
    document: dict[str, Any], made: list[tuple[str, Event]], late_us: dict[int, int]
) -> None:
    naive, left_out = read_naively(document, made)
    promises = [(stream, promise_of(event)) for stream, event in made if event.type == RANGE]
    posted = [one for one in made if one[1].type != RANGE and one[1].id not in left_out]
    given_events = {name: shuffled([event for stream, event in posted if stream == name], late_us) for name in STREAMS}
    far = Event(id="far", type="Z", time_us=FAR_US, key="far", data={})
    with TemporaryDirectory() as folder:
        project = project_of(document, Path(folder))
        batches = {
            name: EventBatch.from_events([*some, replace(far, id=f"far-{name}")]) for name, some in given_events.items()
        }
        found = project.run(batches, promises=promises, is_open=False)
    told = [
        (
            FAR if one["time"] >= LAST_SEEN else one["time"],  # the end of the input decides at the time that has come
            ["finished" if value == "end_of_input" else value for value in one["data"].values()],
        )
        for one in found["events"]
        if one["stream"] == NAME and "far-" not in str(one["data"])
    ]
    assert sorted(told, key=str) == sorted(naive.told(), key=str)
    assert len(found["dead_letters"]) == len(naive.join.violations)
