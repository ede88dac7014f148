import threading
import time
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import redis
from pyspark import cloudpickle

from pipeline.errors import LogDamaged
from pipeline.held_shards import HeldOptions, HeldShards, held_shards
from pipeline.records import EPOCHS_KEY
from pipeline.snapshots.stores import FolderSnapshots
from pipeline.sources import EventLogOptions
from shards.entries import StoredEntry
from shards.rows import OutputRow, rows_of
from shards.state import ShardState
from streams import EventBatch, PatternOn, StreamDeclaration, StreamOn, log_key
from tests.builders.shards import Step, bodies, event, log_of, run_inline

pytestmark = pytest.mark.redis

ENTRIES = 12


def long_log():
    steps: list[Step] = [
        StreamOn(StreamDeclaration(name="orders")),
        PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u)"),
    ]
    steps += [[event(number, "AU"[number % 2], "k")] for number in range(ENTRIES - len(steps))]
    return log_of(steps)


@pytest.fixture
def log(server):
    logs = long_log()
    server.append(logs)
    return [StoredEntry(position=one.position, kind=one.kind, stream=one.stream, body=one.body) for one in logs[0]]


@pytest.fixture
def options(server, tmp_path):
    source = EventLogOptions(redis_url=server.url, shards=1, snapshots=str(tmp_path / "snapshots"))
    return HeldOptions(log=source, handover=tmp_path / "handover")


def without_stats(rows):
    return [(row.kind, row.id, row.body) for row in rows if row.kind != "stats"]


def expected():
    return without_stats(run_inline(long_log()))


def advance(held, log, start, end):
    return rows_of(held.advance(0, "0-0" if start == 0 else log[start - 1].position, log[start:end]))


@pytest.mark.parametrize("is_aside", [True, False])
@pytest.mark.parametrize("with_handover", [True, False])
def test_processes_that_take_turns_find_the_state_where_the_other_left_it(log, options, with_handover, is_aside):
    chosen = options if with_handover else replace(options, handover=None)
    processes = [HeldShards(chosen, is_aside=is_aside), HeldShards(chosen, is_aside=is_aside)]
    rows = []
    for start in range(0, ENTRIES, 2):
        rows += advance(processes[start // 2 % 2], log, start, start + 2)
    assert without_stats(rows) == expected()


def test_a_state_does_not_keep_the_connection_of_its_shards_open(log, options):
    """Only the collector removes states of some kinds, and a connection that it closes fails a later test."""
    held = HeldShards(options)
    advance(held, log, 0, ENTRIES)
    state, connection = held._held[0].state, weakref.ref(held._server)
    del held
    assert connection() is None
    assert state.position == log[-1].position


def test_reports_have_the_costs_of_the_last_seconds(log, options, monkeypatch):
    now = [100.0]
    clocks = SimpleNamespace(monotonic=lambda: now[0], thread_time_ns=time.thread_time_ns, time_ns=time.time_ns)
    monkeypatch.setattr("pipeline.measures.time", clocks)
    held, found = HeldShards(options), []
    for start in range(0, ENTRIES, 2):
        (report,) = bodies(advance(held, log, start, start + 2), "stats")
        found.append(report.get("costs"))
        now[0] += 0.6
    assert [report is not None for report in found] == [True, False, True, False, True, False]
    reports: Any = found
    (first, last) = (reports[2]["streams"]["orders"]["pattern"], reports[4]["streams"]["orders"]["pattern"])
    assert (first["rows_in"], first["rows_out"], first["operators"]) == (4.0, 3.0, {"pair": 3.0})
    assert (last["rows_in"], last["rows_out"]) == (6.0, 8.5)
    assert reports[4]["seconds"] == pytest.approx(1.2 + 0.6 + 0.25)
    assert first["cpu_ns"] > 0


@pytest.mark.parametrize(("least_s", "handed_over"), [(0.0, {10, 12}), (1e9, {2})])
def test_a_state_is_handed_over_where_others_would_have_to_match_long(monkeypatch, log, options, least_s, handed_over):
    monkeypatch.setattr("pipeline.held_shards._SHARED_S", least_s)
    monkeypatch.setattr("pipeline.held_shards._SHARED_TIMES", 0)
    processes, rows = [HeldShards(options), HeldShards(options), HeldShards(options)], []
    for start, process in zip(range(0, ENTRIES, 2), [0, 0, 1, 1, 2, 0], strict=True):
        rows += advance(processes[process], log, start, start + 2)
    assert without_stats(rows) == expected()
    assert {path.stem for path in (options.handover / "0").iterdir()} == {log[end - 1].position for end in handed_over}


def test_a_state_that_is_stored_aside_is_whole_and_that_of_its_step(monkeypatch, log, options):
    monkeypatch.setattr("pipeline.held_shards._SHARED_S", 0.0)
    slow, begins = threading.Event(), FolderSnapshots.write
    monkeypatch.setattr(FolderSnapshots, "write", lambda *args: slow.wait(60) and begins(*args))
    held = HeldShards(options, is_aside=True)
    rows = [*advance(held, log, 0, 2), *advance(held, log, 2, 4)]  # the second while the first is being stored
    assert [*options.handover.glob("0/*.state")] == []
    slow.set()
    held.settle()
    assert [path.stem for path in options.handover.glob("0/*.state")] == [log[1].position]
    rows += advance(HeldShards(options), log, 4, ENTRIES)
    assert without_stats(rows) == expected()


def test_the_error_of_a_state_that_is_stored_aside_is_raised_by_the_next_step(monkeypatch, log, options):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(FolderSnapshots, "write", full)
    held = HeldShards(options, is_aside=True)
    advance(held, log, 0, 2)
    held.settle()
    with pytest.raises(OSError, match="no space left"):
        advance(held, log, 2, 4)
    held.close()


def test_a_state_that_is_stored_aside_may_be_removed_by_the_process_that_has_taken_the_shard(monkeypatch, log, options):
    begun, slow, replaced = threading.Event(), threading.Event(), Path.replace

    def after_the_other(path, target):
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            slow.wait(60)
        return replaced(path, target)

    monkeypatch.setattr(Path, "replace", after_the_other)
    held = HeldShards(options, is_aside=True)
    rows = advance(held, log, 0, 2)
    begun.wait(60)
    rows += advance(HeldShards(options), log, 2, 4)
    slow.set()
    held.settle()
    rows += advance(held, log, 4, ENTRIES)
    assert without_stats(rows) == expected()


def test_a_process_goes_on_from_what_it_kept_where_no_newer_snapshot_is(server, log, options):
    first, second = HeldShards(replace(options, handover=None)), HeldShards(replace(options, handover=None))
    rows = advance(first, log, 0, 4) + advance(second, log, 4, 8)
    server.client.xtrim(log_key(0), minid=log[4].position, approximate=False)
    assert without_stats(rows + advance(first, log, 8, ENTRIES)) == expected()


def test_a_state_that_was_left_half_changed_is_not_used(monkeypatch, log, options):
    def apply_and_fail(state, entries):
        whole_apply(state, [replace(entry, body=body_of_nothing) for entry in entries])
        raise MemoryError

    whole_apply, body_of_nothing = ShardState.advance, EventBatch.from_events([]).to_bytes()
    held, other = HeldShards(replace(options, handover=None)), HeldShards(replace(options, handover=None))
    rows = advance(held, log, 0, 4)
    with monkeypatch.context() as patch:
        patch.setattr(ShardState, "advance", apply_and_fail)
        with pytest.raises(MemoryError):
            advance(held, log, 4, 6)
    rows += advance(other, log, 4, 8)
    assert without_stats(rows + advance(held, log, 8, ENTRIES)) == expected()


def test_a_state_that_is_ahead_is_not_used(log, options):
    held = HeldShards(options)
    first = advance(held, log, 0, 6)
    again = advance(held, log, 6, ENTRIES)
    assert without_stats(advance(held, log, 6, ENTRIES)) == without_stats(again)
    assert without_stats(first) + without_stats(again) == expected()
    assert without_stats(advance(held, log, 0, 6)) == without_stats(first)


def test_a_new_process_goes_on_from_a_snapshot_and_the_log(server, log, options):
    saving = replace(options, log=replace(options.log, snapshot_bytes=1), handover=None)
    rows = advance(HeldShards(saving), log, 0, 5)
    assert server.client.hkeys("forestall:snapshots:0") == [log[4].position.encode()]
    rare = replace(options, handover=None)
    rows += advance(HeldShards(rare), log, 5, 8)
    server.client.xtrim(log_key(0), minid=log[4].position, approximate=False)
    rows += advance(HeldShards(rare), log, 8, ENTRIES)
    assert without_stats(rows) == expected()


def test_snapshots_are_written_when_as_much_was_matched_as_they_hold(server, log, options):
    held = HeldShards(replace(options, log=replace(options.log, snapshot_bytes=1)))
    size = orjson.loads(advance(held, log, 0, 2)[-1].body)["state_bytes"]
    assert size > sum(len(entry.body) for entry in log[:2])
    assert server.client.hlen("forestall:snapshots:0") == 0


def test_a_damaged_hand_over_is_passed_over(log, options):
    rows = advance(HeldShards(options), log, 0, 6)
    (file,) = (path for path in (options.handover / "0").iterdir() if log[5].position in path.name)
    file.write_bytes(file.read_bytes()[:-3])
    rows += advance(HeldShards(options), log, 6, ENTRIES)
    assert without_stats(rows) == expected()


def test_a_snapshot_that_is_gone_is_told_of(server, log, options):
    server.client.hset("forestall:snapshots:0", log[3].position, "100")
    with pytest.raises(LogDamaged, match=r"the snapshot of shard 0 at 1-4 is not in .*put the snapshots back"):
        advance(HeldShards(replace(options, handover=None)), log, 6, 8)


def elsewhere(options, place):
    """A service with other settings, on another day."""
    return HeldShards(replace(options, log=replace(options.log, snapshots=str(place), snapshot_bytes=1), handover=None))


def test_snapshots_of_a_cluster_are_read_by_a_service_with_a_folder(server, log, options, tmp_path):
    rows = advance(elsewhere(options, "redis"), log, 0, 6)
    assert server.client.hvals("forestall:snapshots:0")[0].endswith(b" redis")
    server.client.xtrim(log_key(0), minid=log[5].position, approximate=False)
    rows += advance(elsewhere(options, tmp_path / "snapshots"), log, 6, ENTRIES)
    assert without_stats(rows) == expected()


def test_a_service_that_looks_elsewhere_for_snapshots_names_the_setting(server, log, options, tmp_path):
    rows = advance(elsewhere(options, tmp_path / "here"), log, 0, 6)
    with pytest.raises(LogDamaged, match=r"set FORESTALL_SNAPSHOTS=.*/here .*FORESTALL_SPARK_MASTER.*nothing is lost"):
        advance(elsewhere(options, "redis"), log, 6, 8)
    (tmp_path / "here").rename(tmp_path / "there")
    rows += advance(elsewhere(options, tmp_path / "there"), log, 6, ENTRIES)
    assert without_stats(rows) == expected()


def test_a_state_is_found_before_the_first_entry_comes(server, log, options, tmp_path):
    written = replace(options, log=replace(options.log, results="matched", snapshot_bytes=1), handover=None)
    HeldShards(written).load(0)
    rows = advance(HeldShards(written), log, 0, 6)
    server.client.hset("matched", "position:0", log[5].position)
    held = HeldShards(written)
    held.load(0)
    server.client.delete("forestall:snapshots:0")
    server.client.xtrim(log_key(0), minid=log[5].position, approximate=False)
    assert without_stats(rows + advance(held, log, 6, ENTRIES)) == expected()


def test_a_state_that_cannot_be_had_is_known_before_the_first_entry_comes(server, log, options):
    written = replace(options, log=replace(options.log, results="matched"), handover=None)
    server.client.hset("matched", "position:0", log[5].position)
    server.client.hset("forestall:snapshots:0", log[3].position, "100")
    with pytest.raises(LogDamaged, match="the snapshot of shard 0 at 1-4 is not in"):
        HeldShards(written).load(0)


class Bug(Exception):
    """An error that no code expects."""


@pytest.fixture
def breaking(monkeypatch):
    """Positions whose entries break the matcher half way through."""
    positions: set[str] = set()
    apply = ShardState.advance

    def apply_or_break(self, entries):
        whole = list(entries)
        for place, entry in enumerate(whole):
            if entry.position in positions and entry.kind == "events":
                apply(self, whole[: place + 1])
                raise Bug("half advanced")
        return apply(self, whole)

    monkeypatch.setattr(ShardState, "advance", apply_or_break)
    return positions


def without(position):
    logs = long_log()
    return without_stats(run_inline({0: [entry for entry in logs[0] if entry.position != position]}))


def test_an_entry_that_breaks_the_matcher_is_set_aside_and_nothing_else(log, options, breaking):
    breaking.add(log[6].position)
    held = HeldShards(options)
    rows = advance(held, log, 0, 5) + advance(held, log, 5, 9) + advance(held, log, 9, ENTRIES)
    (letter,) = bodies(rows, "dead-letter")
    assert (letter["code"], letter["position"]) == ("quarantined", log[6].position)
    assert "was set aside, and is still in the log: matching it raised Bug: half advanced" in letter["reason"]
    assert [row for row in without_stats(rows) if row[0] == "alert"] == [
        row for row in without(log[6].position) if row[0] == "alert"
    ]


def test_who_matches_these_entries_again_passes_over_the_same_ones(log, options, breaking):
    breaking.add(log[6].position)
    first = advance(HeldShards(replace(options, handover=None)), log, 0, 9)
    breaking.clear()
    again = advance(HeldShards(replace(options, handover=None)), log, 0, 9)
    assert without_stats(again) == without_stats(first)
    later = HeldShards(replace(options, handover=None))
    assert without_stats(first + advance(later, log, 9, ENTRIES))[-1] == without(log[6].position)[-1]


def test_a_process_that_continues_passes_over_what_another_has_set_aside_since(log, options, breaking):
    breaking.add(log[6].position)
    held, other = HeldShards(options), HeldShards(replace(options, handover=None))
    advance(held, log, 0, 5)
    set_aside = advance(other, log, 5, 9)  # its rows were lost
    breaking.clear()
    assert without_stats(advance(held, log, 5, 9)) == without_stats(set_aside)


@pytest.mark.parametrize("loses", ["the lease", "the race"])
def test_a_process_that_has_lost_the_shard_sets_nothing_aside(server, log, options, breaking, loses):
    server.client.hset(EPOCHS_KEY, "0", 3)
    former = HeldShards(replace(options, handover=None))
    former.load(0, epoch=3)
    if loses == "the lease":
        server.client.hset(EPOCHS_KEY, "0", 4)
    else:
        server.client.hset("forestall:log:matched", "position:0", log[8].position)
    breaking.add(log[6].position)
    assert [letter["code"] for letter in bodies(advance(former, log, 0, 9), "dead-letter")] == ["quarantined"]
    assert server.client.hgetall("forestall:quarantine:0") == {}
    former.forget(0)
    breaking.clear()
    assert bodies(advance(former, log, 0, 9), "dead-letter") == []


def test_an_entry_that_ends_the_process_again_and_again_is_set_aside(log, options, monkeypatch):
    class Killed(BaseException):
        """Stands for a process that is gone: nothing catches it."""

    apply = ShardState.advance

    def apply_or_die(self, entries):
        whole = list(entries)
        if any(entry.position == log[6].position and entry.kind == "events" for entry in whole):
            raise Killed
        return apply(self, whole)

    monkeypatch.setattr(ShardState, "advance", apply_or_die)
    advance(HeldShards(options), log, 0, 5)
    deaths = 0
    while True:
        try:
            rows = advance(HeldShards(options), log, 5, 9)
        except Killed:
            deaths += 1
        else:
            break
    assert deaths == 6  # three of the whole part, three of the entry
    (letter,) = bodies(rows, "dead-letter")
    assert "the process that matched it died, again and again" in letter["reason"]
    assert HeldShards(options)._server.hlen("forestall:tries") == 0


def test_a_step_that_succeeds_makes_no_calls_for_the_quarantine(log, options, monkeypatch):
    held, calls, execute = HeldShards(options), [], redis.Redis.execute_command

    def noted(self, *command, **options):
        calls.append(" ".join(map(str, command[:2])))
        return execute(self, *command, **options)

    monkeypatch.setattr(redis.Redis, "execute_command", noted)
    advance(held, log, 0, 5)
    first, calls[:] = [call for call in calls if "quarantine" in call or "tries" in call], []
    advance(held, log, 5, 7)
    assert first == ["HINCRBY forestall:tries", "HDEL forestall:tries"]
    assert calls == []  # stops and quarantine are read in one pipeline


def test_an_entry_that_ends_a_process_that_continued_is_found_by_the_next_ones(log, options, monkeypatch):
    class Killed(BaseException):
        """Ends a process: nothing catches it."""

    apply = ShardState.advance

    def apply_or_die(self, entries):
        whole = list(entries)
        if any(entry.position == log[6].position and entry.kind == "events" for entry in whole):
            raise Killed
        return apply(self, whole)

    monkeypatch.setattr(ShardState, "advance", apply_or_die)
    rows: list[OutputRow] = []
    held, deaths = HeldShards(options), 0
    advance(held, log, 0, 5)
    while not rows:
        try:
            rows = advance(held, log, 5, 9)
        except Killed:
            held, deaths = HeldShards(options), deaths + 1
    assert deaths == 7  # the first is not counted
    assert [letter["position"] for letter in bodies(rows, "dead-letter")] == [log[6].position]
    advance(held, log, 9, ENTRIES)
    assert held._server.hlen("forestall:tries") == 0


def test_a_report_covers_all_steps_since_the_last_one(log, options):
    held = HeldShards(options)
    rows = [*held.step(0, "0-0", log[:5]), *held.step(0, log[4].position, log[5:9])]
    (row,) = held.report(0)
    found = orjson.loads(row.body)
    assert (found["after"], row.position, found["entries"]) == ("0-0", log[8].position, 9)
    assert found["bytes"] == sum(len(entry.body) for entry in log[:9])
    assert without_stats(rows_of(rows)) == without_stats(
        advance(HeldShards(replace(options, handover=None)), log, 0, 9)
    )
    assert orjson.loads(advance(held, log, 9, ENTRIES)[-1].body)["entries"] == ENTRIES - 9


def test_the_last_row_says_what_it_cost(log, options):
    (*_, row) = advance(HeldShards(options), log, 0, 5)
    told_of = orjson.loads(row.body)
    assert (row.kind, told_of["shard"], told_of["entries"]) == ("stats", 0, 5)
    assert told_of["bytes"] == sum(len(entry.body) for entry in log[:5])
    assert told_of["streams"]["orders"]["events"] == 3
    assert min(told_of[name] for name in ("load_s", "match_s", "keep_s")) > 0


def test_a_process_keeps_its_shards(options):
    assert held_shards(options) is held_shards(cloudpickle.loads(cloudpickle.dumps(options)))  # as Spark sends them
    assert held_shards(replace(options, handover=None)) is not held_shards(options)


def test_a_server_that_does_not_answer_is_not_the_fault_of_an_entry(log, options, monkeypatch):
    def time_out(self, name):
        raise redis.TimeoutError("too late")

    held = HeldShards(replace(options, handover=None))
    with monkeypatch.context() as patch:
        patch.setattr(redis.Redis, "hgetall", time_out)
        with pytest.raises(redis.TimeoutError, match="too late"):
            advance(held, log, 0, 5)
    assert without_stats(advance(held, log, 0, 5) + advance(held, log, 5, ENTRIES)) == expected()


def test_a_handed_over_state_of_an_entry_that_the_server_lost_is_not_used(log, options, server):
    advance(HeldShards(options), log, 0, 6)
    server.client.xdel(log_key(0), log[5].position)
    found, wanted = (
        HeldShards(replace(options, handover=folder)).state_at(0, log[7].position)
        for folder in (options.handover, None)
    )
    assert found.dump() == wanted.dump()
