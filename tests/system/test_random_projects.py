"""A running service finds in random projects what they mean, and what ``forestall run`` finds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings

from service.client import Client
from service.processes.temporary import TemporaryService
from service.projects import LocalProject, read_project
from service.sending import send_events
from streams import Event, EventBatch, parse_time
from tests.builders.waiting import until
from tests.shards.naive_projects import SECOND_US, Project, Told, projects, told_event

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.lengthy]

FAR_S = 3_600
NUMBERS = count()


def drawing(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.generate],  # each example takes seconds
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@drawing(3)
@given(project=projects())
def test_a_service_finds_what_a_project_means(service: TemporaryService, project: Project, tmp_path: Path) -> None:
    compare(service, project, tmp_path)


@pytest.mark.deep
@drawing(12)
@given(project=projects())
def test_a_service_finds_what_more_projects_mean(service: TemporaryService, project: Project, tmp_path: Path) -> None:
    compare(service, project, tmp_path)


def compare(service: TemporaryService, project: Project, folder: Path) -> None:
    prefix = f"g{next(NUMBERS)}_"
    named = with_an_end(project.renamed(prefix))
    expected = named.outputs()
    assert by_run(named, folder / prefix) == {one for one in expected if one[0] != "alert"}
    client = service.client
    declare(named, client)
    for stream, events in named.events.items():
        for start in range(0, len(events), 5):
            send_events(client, stream, events[start : start + 5], f"{stream}-{start}")
    until(lambda: len(results_of(client, prefix)) >= len(expected), "the results", service, 0.2)
    Flag().wait(1.0)  # nothing more may come
    assert results_of(client, prefix) == expected


def with_an_end(project: Project) -> Project:
    """With an event in each source that is so late that all windows are over."""
    ends = {
        stream: [*events, Event(id=f"{stream}-end", type="Z", time_us=FAR_S * SECOND_US, key="end", data={})]
        for stream, events in project.events.items()
    }
    return Project(project.declarations, project.patterns, ends)


def by_run(project: Project, folder: Path) -> set[Told]:
    """The derived events that ``forestall run`` finds."""
    documents = [
        {"kind": "stream", "name": one.name, "derived": one.derived, "lateness": one.lateness}
        for one in project.declarations
    ]
    documents += [
        {"kind": "pattern", "name": pattern.name, "stream": stream, "text": pattern.text}
        for stream, pattern in project.patterns
    ]
    folder.mkdir()
    said = [{name: value for name, value in one.items() if value not in (None, False)} for one in documents]
    (folder / "project.yaml").write_text(yaml.safe_dump_all(said))
    local = LocalProject.of(read_project(folder), folder)
    results = local.run({stream: EventBatch.from_events(events) for stream, events in project.events.items()})
    return {_result(one["stream"], one) for one in results["events"]}


def declare(project: Project, client: Client) -> None:
    """The streams and patterns, by the API."""
    for one in project.declarations:
        body = {"name": one.name, "derived": one.derived, "lateness": one.lateness}
        client.post("/streams", {name: value for name, value in body.items() if value not in (None, False)})
    for stream, pattern in project.patterns:
        client.post("/patterns", {"stream": stream, "text": pattern.text})


def results_of(client: Client, prefix: str) -> set[Told]:
    """Derived events and alerts of one project, in words."""
    alerts = [("alert", one["id"]) for one in client.pages("/alerts") if one["stream"].startswith(prefix)]
    events = [_result(one["into"], one) for one in client.pages("/derived-events") if one["into"].startswith(prefix)]
    assert len(set(alerts)) == len(alerts)
    assert len(set(events)) == len(events)
    return {*alerts, *events}


def _result(stream: str, one: Mapping[str, Any]) -> Told:
    time_us = parse_time(one["time"])
    event = Event(id=one["id"], type=one["type"], time_us=time_us, key=one["key"], data=one["data"])
    return told_event(stream, event)
