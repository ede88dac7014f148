"""Chains of patterns: however the log is cut, however the shards take turns, and whatever their number."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from shards import InlineShards, RowBlock, ShardState
from streams import Event, parse_time
from tests.shards.naive_projects import Project, Told, batch_of, projects, told_event


def told(rows: Sequence[RowBlock]) -> set[Told]:
    """Derived events and alerts, in words."""
    found: list[Told] = []
    for row in (row for block in rows for row in block):
        body = orjson.loads(row.body)
        if row.kind == "derived":
            time_us, data = parse_time(body["time"]), body["data"]
            event = Event(id=body["id"], type=body["type"], time_us=time_us, key=body["key"], data=data)
            found.append(told_event(body["into"], event))
        elif row.kind == "alert":
            found.append(("alert", body["id"]))
        else:
            assert (row.kind, body["code"]) == ("dead-letter", "not-derivable")
    assert len(set(found)) == len(found)
    return set(found)


def begun(project: Project, shards: int) -> InlineShards:
    found = InlineShards(shards)
    for stream, record in project.records:
        found.say(stream, record)
    assert found.settle() == []
    return found


@settings(max_examples=100, deadline=None)
@given(projects())
def test_one_shard_finds_what_the_project_means(project: Project) -> None:
    shards = begun(project, 1)
    for stream, events in project.events.items():
        shards.feed(stream, batch_of(events))
    assert told(shards.finish()) == project.outputs()


@settings(max_examples=60, deadline=None)
@given(projects(), st.sampled_from((1, 3, 8)), st.data())
def test_cuts_turns_reloads_and_shards_change_nothing(project: Project, number: int, data: st.DataObject) -> None:
    shards, rows = begun(project, number), []
    waiting = {stream: list(events) for stream, events in project.events.items()}
    while any(waiting.values()):
        stream = data.draw(st.sampled_from([name for name, events in waiting.items() if events]))
        size = data.draw(st.integers(1, 4))
        shards.feed(stream, batch_of(waiting[stream][:size]))
        del waiting[stream][:size]
        for _ in range(data.draw(st.integers(0, 3))):
            shard = data.draw(st.integers(0, number - 1))
            rows += shards.step(shard, data.draw(st.integers(0, 3)))
            if data.draw(st.booleans()):
                shards.states[shard] = ShardState.load(shards.states[shard].dump())
    rows += shards.finish()
    assert told(rows) == project.outputs()
