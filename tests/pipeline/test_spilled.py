"""States of shards a part of which is on disk: over processes, crashes, lost files, and a divided log."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from pipeline.held_shards import HeldOptions, HeldShards
from pipeline.resharding import divide_states
from pipeline.sources import EventLogOptions
from shards import DERIVED
from shards.entries import StoredEntry
from shards.kinds.joins import JoinKind, merged_stream
from shards.rows import rows_of
from streams import (
    ControlRecord,
    EventBatch,
    LogEntry,
    OperatorOff,
    OperatorOn,
    RecordKind,
    StreamDeclaration,
    StreamOn,
    Tick,
    encode_control,
    log_key,
    shard_of,
)
from tests.builders.shards import event, run_inline

pytestmark = pytest.mark.redis

JOIN: dict[str, Any] = {
    "name": "pairs",
    "inputs": [{"stream": "a", "as": "o"}, {"stream": "b", "as": "p"}],
    "return": {"o": "id(o)", "p": "id(p)"},
    "memory": {"rows": 4, "spill": True},
}
STREAMS = {
    "a": StreamDeclaration(name="a"),
    "b": StreamDeclaration(name="b"),
    merged_stream("pairs"): StreamDeclaration(name=merged_stream("pairs"), derived=True),
    "pairs": StreamDeclaration(name="pairs", derived=True),
}
EVENTS = 60


def operators() -> list[OperatorOn]:
    """The join and its inputs."""
    kind = JoinKind()
    definition = kind.read(JOIN, STREAMS.__getitem__)
    parts = kind.parts(definition, STREAMS.__getitem__)
    return [OperatorOn(replace(one, version=1), "fresh") for one in (definition, *parts)]


def made() -> list[LogEntry]:
    """A log of two streams and a join of them, whose keys come back again and again."""
    steps: list[tuple[str, ControlRecord | EventBatch]] = [(name, StreamOn(one)) for name, one in STREAMS.items()]
    steps += [(one.operator.inputs[0].stream, one) for one in operators()]
    for number in range(EVENTS):
        key = f"k{number * 7 % 11}"
        steps.append(("ab"[number % 2], EventBatch.from_events([event(number, "T", key, text="x" * 200)])))
    return logged(steps)


def logged(steps: list[tuple[str, ControlRecord | EventBatch]], first: int = 1) -> list[LogEntry]:
    """Entries of one shard."""
    return [
        LogEntry(
            position=f"1-{number}",
            kind=RecordKind.EVENTS if isinstance(step, EventBatch) else step.KIND,
            stream=stream,
            body=step.to_bytes() if isinstance(step, EventBatch) else encode_control(step),
        )
        for number, (stream, step) in enumerate(steps, start=first)
    ]


@pytest.fixture
def log(server):
    entries = made()
    server.append({0: entries})
    return [StoredEntry(position=one.position, kind=one.kind, stream=one.stream, body=one.body) for one in entries]


@pytest.fixture
def options(server, tmp_path):
    source = EventLogOptions(redis_url=server.url, shards=1, snapshots=str(tmp_path / "snapshots"), snapshot_bytes=1)
    return HeldOptions(log=source, handover=tmp_path / "handover")


def advance(held, log, start, end):
    return rows_of(held.advance(0, "0-0" if start == 0 else log[start - 1].position, log[start:end]))


def told(rows):
    return [(row.kind, row.id, row.body) for row in rows if row.kind != "stats"]


def expected():
    return told(run_inline({0: made()}))


def folder_of(options) -> Path:
    return Path(options.log.snapshots) / "spilled" / "0"


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.rows")}


def test_processes_that_take_turns_find_the_rows_on_disk(log, options):
    processes = [HeldShards(options), HeldShards(options)]
    rows = []
    for start in range(0, len(log), 5):
        rows += advance(processes[start // 5 % 2], log, start, start + 5)
        assert len(list((options.handover / "0").iterdir())) <= 2
    assert told(rows) == expected()
    assert sum(row.kind == DERIVED.name for row in rows) > 50
    measured = orjson.loads(rows[-1].body)["streams"][merged_stream("pairs")]
    assert measured["join_spilled"] > 40
    assert measured["join_spilled_bytes"] > 40 * 200


def test_a_process_that_begins_again_anywhere_finds_them(log, options):
    rows = advance(HeldShards(options), log, 0, 30)
    for start in range(30, len(log), 9):
        HeldShards(options).advance(0, log[start - 1].position, log[start : start + 9])  # it dies before the commit
        rows += advance(HeldShards(options), log, start, start + 9)
    assert told(rows) == expected()


def forget_snapshots(held):
    """As the source does when newer ones are committed."""
    for position in held._index.positions(0):
        held._index.remove(0, position)
    held._held[0].size_bytes = 0  # so that the next step keeps the state


def test_files_that_no_kept_state_names_are_removed(log, options):
    held, folder = HeldShards(replace(options, handover=None)), folder_of(options)
    for start in range(0, 60, 4):
        advance(held, log, start, start + 4)
    positions = held._index.positions(0)
    assert len(positions) > 1
    assert {path.stem for path in (folder / "kept").iterdir()} >= set(positions)
    before = files_in(folder)
    forget_snapshots(held)
    (folder / "unfinished.12.tmp").write_text("of a process that died")
    advance(held, log, 60, len(log))
    lists = {path.stem: set(path.read_text().splitlines()) for path in (folder / "kept").iterdir()}
    assert lists.keys() <= {*held._index.positions(0), log[-1].position}
    current = held.state_at(0, log[-1].position).files
    assert files_in(folder) == set(current)
    assert before - files_in(folder)
    assert not (folder / "unfinished.12.tmp").exists()


def removed(folder: Path) -> None:
    for path in folder.glob("*.rows"):
        path.unlink()


def damaged(folder: Path) -> None:
    for path in folder.glob("*.rows"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


@pytest.mark.parametrize("harm", [removed, damaged])
def test_rows_that_are_gone_are_made_again_from_the_log(log, options, harm):
    rows = advance(HeldShards(options), log, 0, 40)
    harm(folder_of(options))
    rows += advance(HeldShards(options), log, 40, len(log))
    assert told(rows) == expected()


def test_rows_that_go_while_a_process_holds_the_state_are_made_again(log, options):
    held = HeldShards(options)
    rows = advance(held, log, 0, 40)
    removed(folder_of(options))
    rows += advance(held, log, 40, len(log))
    assert told(rows) == expected()


@pytest.mark.parametrize("harm", [removed, damaged])
def test_a_join_whose_rows_are_gone_for_good_stops_and_the_shard_goes_on(server, log, options, harm):
    advance(HeldShards(options), log, 0, 40)
    harm(folder_of(options))
    server.client.xtrim(log_key(0), minid=log[39].position, approximate=False)
    shutil.rmtree(options.handover)
    later = advance(HeldShards(options), log, 40, 50) + advance(HeldShards(options), log, 50, len(log))
    assert not [row for row in later if row.kind == "dead-letter"]
    (suspension,) = [orjson.loads(row.body) for row in later if row.kind == "join-suspension"]
    assert (suspension["operator"], suspension["pattern"], suspension["version"]) == ("join", "pairs", 1)
    assert "of spilled rows is" in suspension["reason"] or "of spilled rows cannot be read" in suspension["reason"]
    assert "is suspended because rows that it had on disk are missing: the file " in suspension["reason"]
    assert not [row for row in later if row.kind == DERIVED.name and b'"into":"pairs"' in row.body]
    measured = orjson.loads(later[-1].body)["streams"]
    assert measured["a"]["watermark_us"] == (EVENTS - 2) * 1_000_000
    assert measured[merged_stream("pairs")]["join_stored"] == 0


def test_a_stopped_join_leaves_no_files(log, options):
    held = HeldShards(replace(options, handover=None))
    advance(held, log, 0, len(log))
    assert files_in(folder_of(options))
    forget_snapshots(held)
    (stop,) = logged([(merged_stream("pairs"), OperatorOff("join", "pairs"))], first=len(log) + 1)
    entry = StoredEntry(position=stop.position, kind=stop.kind, stream=stop.stream, body=stop.body)
    held.advance(0, log[-1].position, [entry])
    assert not folder_of(options).exists()


def test_a_divided_log_takes_the_rows_along(server, log, options):
    rows = advance(HeldShards(options), log, 0, len(log))
    assert list(divide_states(options, 2))
    shutil.rmtree(folder_of(options))
    new = replace(options, log=replace(options.log, shards=2, generation=2), handover=None)
    held, found = HeldShards(new), []
    times = [100 + number for number in range(24)]
    more: list[tuple[str, ControlRecord | EventBatch]] = [
        ("ba"[number % 2], EventBatch.from_events([event(number, "T", f"k{number % 11}")])) for number in times
    ]
    more += [(stream, Tick(time_us=10**9, cause="events")) for stream in "ab"]
    entries = logged(more, first=len(log) + 1)
    for shard in range(2):
        states = held.state_at(shard, log[-1].position if shard == 0 else "0-0")
        assert states.files
        own = [one for one in entries if one.kind == RecordKind.TICK or is_of(one, shard)]
        found += states.apply(own)
    whole = run_inline({0: [*made(), *entries]})
    assert sorted(derived(rows) + derived(found)) == sorted(derived(whole))


def derived(rows):
    return [row.id for row in rows if row.kind == DERIVED.name and b'"into":"pairs"' in row.body]


def is_of(entry: LogEntry, shard: int) -> bool:
    """Whether the event of an entry is of one of two shards."""
    return bool(shard_of(EventBatch.from_bytes(entry.body).key_hashes, 2)[0] == shard)
