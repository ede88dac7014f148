"""Re-keyed events reach the log as columns, and are the events that their JSON rows list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from service.delivery.sink import append_derived
from service.stores import DerivedEventStore, DerivedPart
from shards import DERIVED, REKEYED, OutputRow, ResultRows, RowBlock, ShardState
from streams import Event, EventBatch, LogEntry, RecordKind, encode_control, format_time, parse_time
from tests.shards.naive_projects import Project, batch_of, projects

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
).filter(lambda value: "\ud800" not in repr(value))
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[list[RowBlock], list[tuple[RowBlock, Event]]]:
    """Blocks of re-keyed events by shard and position, and their events, many of one time; ids are in no order."""
    found, events, number = list[RowBlock](), list[tuple[RowBlock, Event]](), 0
    for shard in range(3):
        for position in range(draw(st.integers(0, 3))):
            made = list[Event]()
            for _ in range(draw(st.integers(1, 4))):
                number += 1
                data = draw(st.dictionaries(st.text(max_size=3), values, max_size=2))
                time_us, identity = draw(st.integers(0, 3)) * 500_001, f"{draw(texts)}{number}"
                made.append(Event(id=identity, type=draw(texts), time_us=time_us, key=draw(texts), data=data))
            into = draw(st.sampled_from(["one", "other"]))
            columns = ResultRows.rekeyed(into, EventBatch.from_events(made))
            block = RowBlock(found=columns, stream="s", position=f"{position}-7", shard=shard)
            found.append(block)
            events += [(block, event) for event in made]
    return found, events


class Recorder:
    """Takes the parts that would be appended."""

    def __init__(self) -> None:
        self.parts: dict[tuple[str, int], DerivedPart] = {}

    def write(self, parts: Mapping[str, Sequence[DerivedPart]], *_: object) -> None:
        self.parts |= {(stream, part.shard): part for stream, found in parts.items() for part in found}


def report(shard: int) -> OutputRow:
    body = orjson.dumps({"after": "0-0", "promises": {}})
    return OutputRow(kind="stats", stream="", id="", body=body, position="9-9", shard=shard)


def by_json(events: Sequence[tuple[RowBlock, Event]]) -> dict[tuple[str, int], list[tuple[Any, ...]]]:
    """What the sink made of JSON rows: read one by one, in the order of time and id."""
    found = defaultdict[tuple[str, int], list[tuple[Any, ...]]](list)
    for block, event in events:
        body = {"time": format_time(event.time_us), "type": event.type, "key": event.key, "data": event.data}
        read = orjson.loads(orjson.dumps(body))
        reported = parse_time(read["time"]), event.id, read["type"], read["key"], orjson.dumps(read["data"])
        found[block.found.subjects[0].as_py(), block.shard].append((*reported, block.position))
    return {place: sorted(some) for place, some in found.items()}


def columns_of(batch: EventBatch) -> list[tuple[Any, ...]]:
    names = ("id", "type", "key", "data")
    return list(zip(batch.time_us.tolist(), *(batch.columns.column(name).to_pylist() for name in names), strict=True))


@given(blocks())
def test_the_sink_appends_the_events_that_their_json_would_give(
    made: tuple[list[RowBlock], list[tuple[RowBlock, Event]]],
) -> None:
    found, events = made
    store = Recorder()
    rows = [row for block in found for row in block]
    append_derived(cast("DerivedEventStore", store), rows, [report(shard) for shard in range(3)])
    reported = {
        place: [(*one, position) for one, position in zip(columns_of(part.events), part.positions, strict=True)]
        for place, part in store.parts.items()
    }
    assert reported == by_json(events)
    for part in store.parts.values():
        again = EventBatch.from_events(part.events.to_events())
        assert np.array_equal(part.events.key_hashes, again.key_hashes)
        assert part.events.columns.schema == again.columns.schema


@settings(max_examples=40, deadline=None)
@given(projects())
def test_events_on_their_way_to_the_log_are_those_that_are_listed(project: Project) -> None:
    state = ShardState(0)
    entries = [(stream, record.KIND, encode_control(record)) for stream, record in project.records]
    entries += [
        (stream, RecordKind.EVENTS, batch_of(some).to_bytes()) for stream, some in project.events.items() if some
    ]
    log = [
        LogEntry(position=f"1-{number}", kind=kind, stream=stream, body=body)
        for number, (stream, kind, body) in enumerate(entries, start=1)
    ]
    listed, sent = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    for row in (row for block in [*state.advance(log), *state.finish()] for row in block):
        body = row.body
        if row.kind == REKEYED.name:
            sent += [(row.subject, row.position, *one) for one in columns_of(EventBatch.from_bytes(body))]
        elif row.kind == DERIVED.name and (one := orjson.loads(body))["rekeyed"]:
            members = parse_time(one["time"]), one["id"], one["type"], one["key"], orjson.dumps(one["data"])
            listed.append((one["into"], row.position, *members))
    assert sorted(sent) == sorted(listed)


def test_a_row_holds_a_bounded_number_of_events() -> None:
    events = [Event(id=f"e{number}", type="T", time_us=number, key="k") for number in range(2_500)]
    found = ResultRows.rekeyed("into", EventBatch.from_events(events)).with_bodies()
    batches = [EventBatch.from_bytes(body) for body in found.bodies.to_pylist()]
    assert [len(batch) for batch in batches] == [1_000, 1_000, 500]
    assert [event for batch in batches for event in batch.to_events()] == events
    assert max(map(len, found.bodies.to_pylist())) < 100_000
