"""The whole way of a backtest: asked for, run by the worker's process, and looked at."""

import sys
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from constraints import to_document
from pipeline import History
from service.backtests import BacktestDraft, BacktestLibrary, PatternChoice
from service.backtests.job import event_notices
from service.backtests.worker import Worker
from service.settings import PREFIX
from service.stores import Submission
from streams import EventBatch, StreamDeclaration
from tests.builders.service import put_constraints
from tests.builders.waiting import until
from tests.service.backtests.histories import (
    alerts_as_matches,
    events_of,
    exact_workflow,
    matches_of,
    question_about,
    report_of,
    write_lines,
)

pytestmark = [pytest.mark.redis, pytest.mark.slow]

TEXT = "PATTERN p EVENT SEQ(A a, F f)"
OLD = "PATTERN p EVENT SEQ(A a, F f [v > 2])"
LARGE = """
import runpy
import pipeline.runs.in_process

pipeline.runs.in_process.SMALL_BYTES = 0
runpy.run_module("service.backtests.run", run_name="__main__")
"""


@pytest.fixture
def served(tmp_path, settings, monkeypatch):
    """Settings that the process of a backtest reads from its environment too."""
    folder = tmp_path / "history"
    folder.mkdir()
    chosen = {
        "BACKTEST_DIR": str(folder),
        "SPARK_MASTER": "local[2]",
        "DATA_DIR": str(tmp_path / "data"),
        "SHARDS": "3",
    }
    for name, value in chosen.items():
        monkeypatch.setenv(PREFIX + name, value)
    return settings.model_copy(
        update={"backtest_dir": folder, "spark_master": "local[2]", "data_dir": tmp_path / "data"}
    )


@cache
def expected(text, *, is_open):
    """What the command finds: in the log, and in the folder, where events of one time are in the order of the files."""
    events = events_of()
    if not is_open:
        events = sorted(events[1::2] + events[::2], key=lambda event: event.time_us)
    return matches_of(report_of(question_about(text, exact_workflow(), is_open=is_open), events))


def declare(stores):
    constraint_set = exact_workflow()
    end = tuple(sorted(constraint_set.end_events))
    stores.registry.declare_stream(StreamDeclaration(name="orders", key="key", end_events=end))
    put_constraints(stores.registry, "orders", to_document(constraint_set), (), 1)


def run_to_end(stores, library, clock, *names, **options):
    worker = Worker(stores, clock, **options)

    def are_over():
        worker.step()
        return all(library.get(name)[0].is_over for name in names)

    try:
        until(are_over, "the backtests")
    finally:
        worker.close()
    return [library.get(name) for name in names]


def all_alerts(library, name):
    page = library.alerts(name, limit=7)
    alerts = page.items
    while page.next is not None:
        page = library.alerts(name, after=page.next, limit=7)
        alerts += page.items
    return alerts


def test_a_folder_and_the_log_give_the_alerts_of_the_command(stores, served, clock):
    declare(stores)
    events = events_of()
    write_lines(served.backtest_dir / "one.jsonl", events[::2])
    columns = {
        "id": [event.id for event in events[1::2]],
        "type": [event.type for event in events[1::2]],
        "time": pa.array([event.time_us for event in events[1::2]], pa.timestamp("us", tz="UTC")),
        "key": [event.key for event in events[1::2]],
        "v": [event.data["v"] for event in events[1::2]],
    }
    (served.backtest_dir / "more").mkdir()
    pq.write_table(pa.table(columns), served.backtest_dir / "more" / "two.parquet")
    batch = EventBatch.from_events(events)
    stores.log.append_events(
        Submission(stream="orders", batch=batch, dead_letters=(), answer={}, fingerprint="f", token="t")
    )
    library = BacktestLibrary(stores, served, clock)
    against = PatternChoice(text=OLD)
    draft = BacktestDraft(
        stream="orders", pattern=PatternChoice(text=TEXT), against=against, path=".", pruning="compare"
    )
    by_folder = library.ask(draft).id
    by_log = library.ask(BacktestDraft(stream="orders", pattern=PatternChoice(text=TEXT))).id
    (folder, summary), (log, of_log) = run_to_end(stores, library, clock, by_folder, by_log)

    assert summary["warnings"] == of_log["warnings"] == []
    assert (folder.status, folder.error, folder.progress) == ("done", None, 1.0)
    assert (log.status, log.error) == ("done", None)
    assert (summary["events"], of_log["events"]) == (len(events), len(events))
    assert alerts_as_matches(all_alerts(library, by_folder)) == expected(TEXT, is_open=False)
    assert alerts_as_matches(all_alerts(library, by_log)) == expected(TEXT, is_open=True)
    added = [alert for alert in all_alerts(library, by_folder) if alert["change"] == "added"]
    changes, pruning = summary["comparisons"]
    assert (changes["with"], changes["lost"]) == ("against", 0)
    assert changes["added"] == len(added) == len(expected(TEXT, is_open=False)) - len(expected(OLD, is_open=False)) > 0
    assert (pruning["with"], pruning["added"]) == ("no_prune", 0)


@pytest.mark.parametrize("path", [None, "one.jsonl"])
def test_names_that_no_event_has_are_warnings_of_the_result(stores, served, clock, path):
    declare(stores)
    events = events_of()
    write_lines(served.backtest_dir / "one.jsonl", events)
    batch = EventBatch.from_events(events)
    stores.log.append_events(
        Submission(stream="orders", batch=batch, dead_letters=(), answer={}, fingerprint="f", token="t")
    )
    library = BacktestLibrary(stores, served, clock)
    pattern = PatternChoice(text="PATTERN p EVENT SEQ(A a [w > 2], NOT Unknown)")
    name = library.ask(BacktestDraft(stream="orders", pattern=pattern, path=path)).id
    ((_, summary),) = run_to_end(stores, library, clock, name)
    assert [warning.partition(", so")[0] for warning in summary["warnings"]] == [
        "p: line 1, column 38: Unknown is none of the event types in these events",
        "p: line 1, column 26: no event of the type A has w",
    ]


def test_cloudevents_and_plain_lines_of_one_file_give_a_result_with_warnings(stores, served, clock):
    stores.registry.declare_stream(StreamDeclaration(name="orders"))
    attributes = '"specversion":"1.0","source":"/s"'
    (served.backtest_dir / "mixed.jsonl").write_text(
        f'{{{attributes},"id":"1","type":"A","time":"2026-01-01T00:00:00Z","subject":"k","data":{{"n":4}}}}\n'
        '{"id":"2","type":"B","time":"2026-01-01T00:00:01Z","subject":"k","data":{"m":1}}\n'
    )
    pattern = PatternChoice(text="PATTERN p EVENT SEQ(A a [n > 3 AND w > 2], B b [m > 0])")
    summary = result_over(stores, served, clock, pattern, "mixed.jsonl")
    assert (summary["events"], summary["alerts_kept"]) == (2, 0)
    assert [warning.partition(", so")[0] for warning in summary["warnings"]] == [
        "p: line 1, column 36: no event of the type A has w"
    ]


def test_members_beside_the_mapped_ones_are_data_of_which_no_warning_reports_the_lack(stores, served, clock):
    mapping = {"data": None, "id": "n", "type": "t", "time": "ts"}
    stores.registry.declare_stream(StreamDeclaration.from_json({"name": "orders", "mapping": mapping}))
    (served.backtest_dir / "mapped.jsonl").write_text('{"n":4,"t":"A","ts":"2026-01-01T00:00:00Z","subject":"k"}\n')
    summary = result_over(stores, served, clock, PatternChoice(text="PATTERN p EVENT A a [n > 3]"), "mapped.jsonl")
    assert (summary["events"], summary["alerts_kept"], summary["warnings"]) == (1, 1, [])


def result_over(stores, served, clock, pattern, path):
    library = BacktestLibrary(stores, served, clock)
    name = library.ask(BacktestDraft(stream="orders", pattern=pattern, path=path)).id
    ((backtest, summary),) = run_to_end(stores, library, clock, name)
    assert backtest.error is None, backtest.error["detail"]
    return summary


def test_an_error_while_warnings_are_determined_leaves_no_warnings(tmp_path):
    file = tmp_path / "bad.jsonl"
    file.write_text("nonsense\n")
    assert event_notices(question_about(TEXT), History(files=(file,))) == []


def test_a_file_that_cannot_be_read_is_told(stores, served, clock):
    declare(stores)
    (served.backtest_dir / "bad.jsonl").write_text('{"id":"a"}\nnonsense\n')
    library = BacktestLibrary(stores, served, clock)
    name = library.ask(BacktestDraft(stream="orders", pattern=PatternChoice(text=TEXT), path="bad.jsonl")).id
    ((found, summary),) = run_to_end(stores, library, clock, name)
    assert (found.status, found.error["code"], summary) == ("failed", "event-file", None)
    assert "line 2: not JSON" in found.error["detail"]


@pytest.mark.spark
def test_a_large_history_is_matched_in_spark(stores, served, clock):
    declare(stores)
    events = events_of()
    write_lines(served.backtest_dir / "one.jsonl", events[1::2])
    write_lines(served.backtest_dir / "two.jsonl", events[::2])
    library = BacktestLibrary(stores, served, clock)
    name = library.ask(BacktestDraft(stream="orders", pattern=PatternChoice(text=TEXT), path=".")).id
    ((found, _),) = run_to_end(stores, library, clock, name, command=(sys.executable, "-P", "-c", LARGE))
    assert (found.status, found.error) == ("done", None)
    assert alerts_as_matches(all_alerts(library, name)) == expected(TEXT, is_open=False)
    assert (served.data_dir / "spark").is_dir()
