"""Both executors of a backtest find the alerts of the command, whatever the shards."""

import orjson
import pytest

from pipeline import BacktestOptions, History, InProcess, InSpark, history_files, run_backtest
from pipeline.errors import BacktestFailed
from service.backtests.plans import plan_of
from streams import EventFileError
from streams.readers import ReaderOptions
from tests.service.backtests.histories import (
    PATTERNS,
    alerts_as_matches,
    events_of,
    exact_workflow,
    hand_written,
    matches_of,
    question_about,
    report_of,
    tried,
    write_lines,
)


@pytest.fixture(params=["process", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])])
def executor(request):
    """Runs the tasks of a backtest in this process, and in Spark."""
    if request.param == "process":
        return InProcess()
    return InSpark(request.getfixturevalue("spark").sparkContext)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The events in two files, neither of them in the order of time."""
    folder = tmp_path_factory.mktemp("history")
    events = events_of()
    write_lines(folder / "a.jsonl", events[1::2][::-1])
    write_lines(folder / "b.jsonl", events[::2])
    (folder / "_SUCCESS").write_text("")
    return folder


def history_of(folder, **options):
    return {"orders": History(files=history_files(folder), options=ReaderOptions(duplicates="keep", **options))}


@pytest.mark.parametrize(
    ("name", "guard", "shards"),
    [
        ("window", hand_written, 1),
        ("not at the end", exact_workflow, 4),
        ("several", exact_workflow, 4),
        ("attributes", lambda: None, 4),
    ],
)
def test_alerts_are_the_matches_of_the_command(executor, folder, name, guard, shards):
    events = sorted_as_files(events_of())
    question = question_about(PATTERNS[name], guard())
    result = run_backtest(executor, history_of(folder), plan_of(question), BacktestOptions(shards=shards))
    report = report_of(question, events)
    assert alerts_as_matches(result.rows.get("alert", ())) == matches_of(report)
    counts = result.variants["pattern"]
    assert (result.events, counts.events, counts.rows["ending"]) == (
        len(events),
        len(events),
        len(report.bodies("endings")),
    )
    assert (result.first_us, result.last_us) == (events[0].time_us, events[-1].time_us)


def sorted_as_files(events):
    return sorted([*events[1::2][::-1], *events[::2]], key=lambda event: event.time_us)


def test_all_rows_go_to_files_and_some_to_the_caller(executor, folder, tmp_path):
    question = question_about("PATTERN p EVENT SEQ(A a, F f)", against=tried("PATTERN p EVENT SEQ(A a, F f [v > 2])"))
    options = BacktestOptions(shards=4, limit=3, output=tmp_path)
    shares: list[float] = []
    result = run_backtest(executor, history_of(folder), plan_of(question), options, shares.append)
    alerts = result.variants["pattern"].rows["alert"]
    assert len(result.rows["alert"]) == 3 < alerts
    assert len(written(tmp_path, "alert")) == alerts
    assert len(written(tmp_path, "added.against")) == result.comparisons["against"].added > 3
    assert not list(tmp_path.glob(".*"))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def written(folder, kind):
    return [orjson.loads(line) for file in folder.glob(f"{kind}-*.jsonl") for line in file.read_bytes().splitlines()]


def test_what_progress_raises_ends_the_backtest(executor, folder):
    def stop(_):
        raise InterruptedError

    question = question_about("PATTERN p EVENT SEQ(A a, F f)")
    with pytest.raises(InterruptedError):
        run_backtest(executor, history_of(folder), plan_of(question), BacktestOptions(shards=1), stop)


def test_the_order_of_the_file_counts_over_all_files(executor, tmp_path):
    (tmp_path / "a.csv").write_text("type,key\nA,k\nX,k\n")
    (tmp_path / "b.csv").write_text("type,key\nF,k\n")
    history = history_of(tmp_path, times="line")
    question = question_about("PATTERN p EVENT SEQ(A a, F f)")
    result = run_backtest(executor, history, plan_of(question), BacktestOptions(shards=2))
    (alert,) = result.rows["alert"]
    assert alert["end"] == "1970-01-01T00:00:00.000002Z"


def test_problems_of_files_are_told_in_the_words_of_the_reader(executor, tmp_path):
    (tmp_path / "bad.jsonl").write_text("nonsense\n{}\n")
    question = question_about("PATTERN p EVENT A a")
    with pytest.raises(EventFileError, match=r"(?s)bad\.jsonl: 2 problems\n  line 1: not JSON.*line 2"):
        run_backtest(executor, history_of(tmp_path), plan_of(question), BacktestOptions(shards=1))


def test_what_tasks_die_of_is_told(executor, folder, tmp_path):
    question = question_about("PATTERN p EVENT SEQ(A a, F f)")
    options = BacktestOptions(shards=1, output=tmp_path / "none")
    with pytest.raises(BacktestFailed, match="No such file or directory"):
        run_backtest(executor, history_of(folder), plan_of(question), options)
