"""Backtests read below one folder and nowhere else."""

import pytest

from service.backtests.sources import LogRange, allowed_path, export_log, require_inside
from service.errors import BacktestRefused
from service.stores import Submission
from streams import Event, EventBatch
from streams.readers import iterate_events


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "a.jsonl").write_text("")
    (tmp_path / "secret.jsonl").write_text("")
    (tmp_path / "in" / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    return tmp_path / "in"


@pytest.mark.parametrize("path", ["deep/a.jsonl", "deep", ".", "deep/../deep"])
def test_what_is_below_may_be_read(folder, path):
    assert allowed_path(folder, path) == (folder / path).resolve()
    assert allowed_path(folder, str(folder / path)) == (folder / path).resolve()


@pytest.mark.parametrize("path", ["../secret.jsonl", "deep/../../secret.jsonl", "/etc/passwd", "link.jsonl", "..", "~"])
def test_what_is_elsewhere_is_refused(folder, path):
    with pytest.raises(BacktestRefused, match="FORESTALL_BACKTEST_DIR"):
        allowed_path(folder, path)


def test_odd_names_are_refused(folder):
    for path in ("a\0b", "x" * 5_000, "none.jsonl"):
        with pytest.raises(BacktestRefused):
            allowed_path(folder, path)


def test_without_a_folder_there_is_the_log_only():
    with pytest.raises(BacktestRefused, match="BACKTEST_DIR is not set; use the log"):
        allowed_path(None, "a.jsonl")


def test_links_in_a_folder_are_refused(folder, tmp_path):
    require_inside(folder, (folder / "deep" / "a.jsonl",))
    with pytest.raises(BacktestRefused, match=r"link\.jsonl"):
        require_inside(folder, (folder / "deep" / "a.jsonl", folder / "link.jsonl"))


@pytest.mark.redis
def test_the_log_is_written_to_files_in_its_order(stores, tmp_path):
    events = [
        Event(id=f"e{n}", type="A", time_us=9 - n, key=f"k{n % 4}", data={"n": 2**53 + n, "t": "ä"}) for n in range(9)
    ]
    for stream, part in (("orders", events[:5]), ("others", events[:2]), ("orders", events[5:])):
        batch = EventBatch.from_events(part)
        stores.log.append_events(
            Submission(
                stream=stream, batch=batch, dead_letters=(), answer={}, fingerprint="f", token=f"{stream}{len(part)}"
            )
        )
    files = export_log(stores.log, tmp_path, LogRange(stream="orders", now_us=2**52)).files
    found = [list(iterate_events(file)) for file in files]
    assert sorted((event for part in found for event in part), key=lambda event: event.id) == events
    for part in found:
        for key in {event.key for event in part}:
            mine = [event for event in part if event.key == key]
            assert mine == [event for event in events if event.key == key]
    assert export_log(stores.log, tmp_path, LogRange(stream="orders", now_us=0)).files == files
    assert all(file.read_bytes() == b"" for file in files)
