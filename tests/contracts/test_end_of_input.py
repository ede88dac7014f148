"""The end of a finite input gives equal rows with any number of shards, inline and in rounds."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest

from pipeline import BacktestOptions, InProcess, run_backtest
from pipeline.runs.tasks import ShardRows
from service.projects import LocalProject, read_project
from shards import RoundRows
from streams import Event, EventBatch
from tests.contracts.test_ways_of_running import (
    STREAMS,
    events_of,
    histories_of,
    inline,
    plan_of,
    project_of,
    rows_of_backtest,
    said,
)

LATE = STREAMS.replace("keys:", "lateness: 10 s, keys:")
READ_WITH_SOURCE = {
    "joined with its source": """
{kind: stream, name: orders, keys: {customer: data.customer}}
---
{kind: pattern, name: p1, stream: orders,
 text: 'PATTERN p1 EVENT SEQ(A a, A b) WITHIN 9 s RETURN a.v AS v INTO d2 KEY v TYPE p1'}
---
{kind: join, name: j3, inputs: [{stream: d2, as: x, window: 90 s}, {stream: orders, as: y, window: 20 s}],
 outer: [x, y], return: {v: x.v, x: id(x), y: id(y)}}
---
{kind: aggregate, name: g8, of: d2, by: [key], values: {n: count()}, window: transaction}
""",
    "joined with its aggregate": """
{kind: stream, name: orders}
---
{kind: pattern, name: p2, stream: orders, text: 'PATTERN p2 EVENT B a RETURN a.v AS v INTO d3 TYPE p2'}
---
{kind: aggregate, name: g6, of: d3, by: [key], values: {n: count()}, window: {tumbling: 60 s}}
---
{kind: join, name: j7, inputs: [{stream: d3, as: x, key: v, window: 30 s}, {stream: g6, as: y, window: 20 s}],
 outer: [x], return: {x: id(x), y: id(y)}}
---
{kind: aggregate, name: g8, of: d3, by: [v], values: {n: count()}, window: 15 s, having: n >= 1, clear: true}
""",
}
IDLE = f"""{STREAMS}
{{kind: stream, name: kept, derived: true, idle_timeout: 12 s}}
---
{{kind: stream, name: moves, derived: true, idle_timeout: 15 s}}
---
"""


ENDED_BY_THE_INPUT = """
{kind: stream, name: orders}
---
{kind: pattern, name: p1, stream: orders, text: 'PATTERN p1 EVENT SEQ(P a, NOT Q b) RETURN a.v AS v INTO d2 TYPE p1'}
---
{kind: aggregate, name: g, of: d2, by: [v], values: {n: count()}, window: {session: 20 s}}
"""


@pytest.mark.parametrize("name", ["aggregates", "re-keyed", "ended"])
def test_with_lateness_the_end_is_the_newest_event_of_any_shard(tmp_path, name):
    require_one_answer(tmp_path, name, LATE)


def test_idle_traces_of_derived_streams_end_alike(tmp_path):
    require_one_answer(tmp_path, "ended", IDLE)


@pytest.mark.parametrize("name", ["aggregates", "re-keyed", "ended"])
def test_a_source_without_events_changes_nothing(tmp_path, name):
    require_one_answer(tmp_path, name, STREAMS, {"orders": events_of(name)["orders"]})


def test_at_the_end_of_random_events_shards_change_nothing(tmp_path, draws):
    for seed in draws(30):
        require_one_answer(tmp_path, "ended", Random(seed).choice([STREAMS, LATE, IDLE]), random_events(Random(seed)))


@pytest.mark.parametrize("name", READ_WITH_SOURCE)
def test_time_passes_in_a_stream_with_other_keys_that_is_read_with_its_source(tmp_path, name):
    given = [("A", 208, "k4", "k1"), ("A", 216, "k4", "k1"), ("B", 228, "k3", "k3"), ("C", 353, "k0", "k3")]
    require_one_answer_to(tmp_path, READ_WITH_SOURCE[name], given)


def test_windows_end_for_events_that_only_the_end_decides(tmp_path):
    """They are older than the time that has passed in their stream."""
    given = [("P", 266, "k5", "k3"), ("P", 300, "k3", "k1"), ("Q", 330, "k4", "k2")]
    require_one_answer_to(tmp_path, ENDED_BY_THE_INPUT, given)


def require_one_answer_to(tmp_path, rules: str, given: list[tuple[str, int, str, str]]) -> None:
    (tmp_path / "rules.yaml").write_text(rules)
    project = LocalProject.of(read_project(tmp_path), tmp_path)
    orders = EventBatch.from_events(
        [
            Event(id=f"e{n}", type=kind, time_us=s * 1_000_000, key=key, data={"v": v, "customer": v})
            for n, (kind, s, key, v) in enumerate(given)
        ]
    )
    expected = inline(project, {"orders": orders}, 1)
    assert expected
    for shards in (3, 8):
        assert inline(project, {"orders": orders}, shards) == expected
    for shards in (1, 8):
        options = BacktestOptions(shards=shards, limit=1000)
        histories = histories_of(project, {"orders": orders}, tmp_path)
        assert rows_of_backtest(run_backtest(InProcess(), histories, plan_of(project), options)) == expected


def test_a_round_that_runs_again_leaves_only_its_last_rows(tmp_path):
    """Its files are those of the last run, and its progress does not fall."""
    project, shares, output = project_of(tmp_path, "ended"), [0.0], tmp_path / "rows"
    output.mkdir()
    options = BacktestOptions(shards=8, limit=10**6, output=output)
    histories = histories_of(project, events_of("ended"), tmp_path)
    result = run_backtest(InProcess(), histories, plan_of(project), options, shares.append)
    written = [
        (file.name.rpartition("-")[0], line) for file in output.iterdir() for line in file.read_bytes().splitlines()
    ]
    assert said(written) == rows_of_backtest(result)
    assert all(before <= after for before, after in pairwise(shares))
    assert shares[-1] == 1.0


def require_one_answer(folder, name: str, streams: str, events: dict[str, EventBatch] | None = None) -> None:
    events = events or events_of(name)
    expected = inline(project_of(folder, name, streams), events, 1)
    assert expected
    for shards in (3, 8):
        assert inline(project_of(folder, name, streams), events, shards) == expected
    project = project_of(folder, name, streams)
    histories = histories_of(project, events, folder)
    for shards in (1, 8):
        options = BacktestOptions(shards=shards, limit=10**6)
        assert rows_of_backtest(run_backtest(InProcess(), histories, plan_of(project), options)) == expected


def random_events(rng: Random) -> dict[str, EventBatch]:
    """Events of few keys, some at one time, with pauses about as long as the windows of the rules."""
    events = {}
    for stream, types in (("orders", "ABC"), ("payments", "PQ")):
        time_us, some = 0, []
        for number in range(rng.randrange(5, 60)):
            time_us += rng.choice([0, 1, 4, 9, 30]) * 1_000_000
            key = f"k{rng.randrange(6)}"
            data = {"v": rng.choice(["k1", "k2", "k3"]), "customer": rng.choice(["k1", "k4"]), "other": key}
            some.append(Event(id=f"{stream}{number}", type=rng.choice(types), time_us=time_us, key=key, data=data))
        events[stream] = EventBatch.from_events(some)
    return events


def test_files_that_only_the_earlier_run_of_a_round_wrote_are_removed(tmp_path):
    """Files of other shards stay."""
    options = BacktestOptions(shards=2, limit=9, output=tmp_path)
    for shard, label, is_repeated in ((0, "alert", False), (1, "alert", False), (1, "derived", True)):
        with ExitStack() as files:
            rows = ShardRows(["tested"], options, shard, files)
            assert len(list(rows.of([RoundRows(label=label, variant=0, bodies=pa.array([b"{}"]))]))) == 1
            rows.publish(is_repeated=is_repeated)
    assert {file.name for file in tmp_path.iterdir()} == {"alert-00000.jsonl", "derived-00001.jsonl"}
