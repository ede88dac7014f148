"""Chains of patterns: however the log is cut, however the shards take turns, and whatever their number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from shards import InlineShards, OutputRow, RowBlock, ShardState, rows_of
from streams import (
    ConstraintsOn,
    ControlRecord,
    Event,
    LogEntry,
    PatternOn,
    RecordKind,
    StreamDeclaration,
    StreamOn,
    Tick,
    TraceEnd,
    encode_control,
    parse_time,
)
from tests.shards.naive_projects import (
    OF_DERIVED,
    OF_SOURCES,
    SECOND_US,
    SOURCES,
    Project,
    Told,
    batch_of,
    projects,
    told_event,
)


def told(rows: Sequence[RowBlock]) -> set[Told]:
    """Derived events and alerts, in words."""
    return told_bodies((row.kind, row.body) for block in rows for row in block)


def told_bodies(rows: Iterable[tuple[str, bytes]]) -> set[Told]:
    """The same of kinds and bodies."""
    found: list[Told] = []
    for kind, content in rows:
        body = orjson.loads(content)
        if kind == "derived":
            time_us, data = parse_time(body["time"]), body["data"]
            event = Event(id=body["id"], type=body["type"], time_us=time_us, key=body["key"], data=data)
            found.append(told_event(body["into"], event))
        elif kind == "alert":
            found.append(("alert", body["id"]))
        else:
            assert (kind, body["code"]) == ("dead-letter", "not-derivable")
    assert len(set(found)) == len(found)
    return set(found)


def begun(project: Project, shards: int) -> InlineShards:
    found = InlineShards(shards)
    for stream, record in project.records:
        found.append_record(stream, record)
    assert found.settle() == []
    return found


@settings(max_examples=60, deadline=None)
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


@st.composite
def _messy_events(draw: st.DrawFn) -> list[tuple[str, ControlRecord | list[Event]]]:
    """Batches of both sources, and records about time."""
    said: list[tuple[str, ControlRecord | list[Event]]] = []
    least = draw(st.sampled_from([-2, 0]))  # at 0 no event comes late
    row = st.tuples(st.sampled_from(["A", "A", "B", "B", "C", "End"]), st.sampled_from("kl"), st.integers(least, 2))
    seconds, number = 5, 0
    for _ in range(draw(st.integers(1, 8))):
        stream = draw(st.sampled_from(SOURCES))
        some: list[Event] = []
        for event_type, key, pause in draw(st.lists(row, min_size=1, max_size=5)):
            number, seconds = number + 1, seconds + pause
            time_us, data = seconds * SECOND_US, {"v": number % 3, "w": number}
            some.append(Event(id=f"e{number}", type=event_type, time_us=time_us, key=key, data=data))
        said.append((stream, some))
        match draw(st.integers(0, 5)):
            case 0:
                said.append((stream, TraceEnd(key="k")))
            case 1:
                said.append((draw(st.sampled_from(SOURCES)), Tick(time_us=(seconds + 3) * SECOND_US, cause="events")))
            case 2:
                said.append(("d0", Tick(time_us=seconds * SECOND_US, cause="events")))
    return said


@st.composite
def messy_logs(draw: st.DrawFn) -> list[LogEntry]:
    """One shard: events out of order and at equal times, ticks, ends of traces, constraints that traces break."""
    texts = (
        *OF_SOURCES,
        "SEQ(A a, NOT B) WITHIN 9 s RETURN a.v AS v",
        "SEQ(A a, WITHIN 2 s NOT C, B b) RETURN b.v AS v",
    )
    said: list[tuple[str, ControlRecord | list[Event]]] = [
        ("s0", StreamOn(StreamDeclaration(name="s0", end_events=("End",), lateness=draw(st.sampled_from((None, 2)))))),
        ("s1", StreamOn(StreamDeclaration(name="s1", idle_timeout=draw(st.sampled_from((None, 3)))))),
        ("d0", StreamOn(StreamDeclaration(name="d0", derived=True, idle_timeout=draw(st.sampled_from((None, 4)))))),
        ("d1", StreamOn(StreamDeclaration(name="d1", derived=True))),
        ("s0", ConstraintsOn(name="s0", version=1, document={"constraints": ["exclusive(B, C)"]})),
    ]
    into = st.sampled_from((" INTO d0 TYPE X", " INTO d0 TYPE Y", " INTO d1 TYPE X", " INTO d0 KEY v TYPE X", ""))
    for number in range(draw(st.integers(1, 4))):
        text = f"PATTERN p{number} EVENT {draw(st.sampled_from(texts))}{draw(into) if number else ' INTO d0 TYPE X'}"
        said.append((draw(st.sampled_from(SOURCES)), PatternOn(name=f"p{number}", version=1, text=text)))
    for number in range(draw(st.integers(1, 3))):
        end = draw(st.sampled_from((" INTO d1 TYPE Y", " INTO d1 KEY v TYPE Y", "")))
        text = f"PATTERN q{number} EVENT {draw(st.sampled_from(OF_DERIVED))}{end}"
        said.append(("d0", PatternOn(name=f"q{number}", version=1, text=text)))
    said.append(
        ("d1", PatternOn(name="last", version=1, text=f"PATTERN last EVENT {draw(st.sampled_from(OF_DERIVED))}"))
    )
    said += draw(_messy_events())
    return [
        LogEntry(
            position=f"1-{place}",
            kind=RecordKind.EVENTS if isinstance(step, list) else step.KIND,
            stream=stream,
            body=batch_of(step).to_bytes() if isinstance(step, list) else encode_control(step),
        )
        for place, (stream, step) in enumerate(said, start=1)
    ]


def whole(rows: Sequence[OutputRow]) -> list[tuple[str, str, bytes]]:
    return sorted((row.kind, row.id, row.body) for row in rows if row.kind != "dead-letter")


@settings(max_examples=60, deadline=None)
@given(messy_logs(), st.data())
def test_cuts_and_reloads_of_a_messy_log_change_nothing(log: list[LogEntry], data: st.DataObject) -> None:
    state, again = ShardState(0), ShardState(0)
    expected = [*state.apply(log), *rows_of(state.finish())]
    rows: list[OutputRow] = []
    done = 0
    while done < len(log):
        end = data.draw(st.integers(done + 1, len(log)))
        rows += again.apply(log[done:end])
        again, done = ShardState.load(again.dump()) if data.draw(st.booleans()) else again, end
    rows += rows_of(again.finish())
    assert whole(rows) == whole(expected)
    assert [row.kind for row in expected if b"control-record" in row.body] == []
    assert again.promises() == state.promises()
