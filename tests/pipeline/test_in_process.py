"""Which histories a backtest matches in its own process."""

import pytest

from pipeline import History, is_small
from pipeline.errors import BacktestFailed
from pipeline.runs.in_process import _matched
from pipeline.runs.tasks import RoundTask


@pytest.mark.parametrize(("name", "bytes_"), [("a.jsonl", 800), ("a.csv.gz", 100), ("a.parquet", 100)])
def test_histories_are_small_up_to_a_number_of_bytes_and_packed_ones_count_eight_times(
    tmp_path, monkeypatch, name, bytes_
):
    (tmp_path / name).write_bytes(b"x" * bytes_)
    (tmp_path / "b.jsonl").write_bytes(b"x" * 100)
    histories = {file: History(files=(tmp_path / file,)) for file in (name, "b.jsonl")}
    for bound, expected in ((900, False), (901, True)):
        monkeypatch.setattr("pipeline.runs.in_process.SMALL_BYTES", bound)
        assert is_small(histories) is expected


def test_a_file_that_is_gone_is_left_to_the_reader(tmp_path):
    assert is_small({"s": History(files=(tmp_path / "none.jsonl",))})


def test_whatever_a_task_raises_is_the_reason_of_the_failed_backtest(monkeypatch):
    def matched(task, dealt):
        raise MemoryError("no room")

    monkeypatch.setattr(RoundTask, "matched", matched)
    task = object.__new__(RoundTask)
    with pytest.raises(BacktestFailed, match="the backtest failed: MemoryError: no room"):
        _matched(task, iter(()))
