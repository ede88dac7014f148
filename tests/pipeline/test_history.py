"""Which files a history has."""

import numpy as np
import pytest

from pipeline.runs.history import Facts, History, history_files, parts_of, reading, received
from streams import EventBatch, EventFileError
from streams.readers import ReaderOptions


def test_files_below_a_folder_come_by_their_paths_without_hidden_ones(tmp_path):
    for name in ("b.jsonl", "a/z.csv", "_temporary/x.jsonl", ".crc", "a/_SUCCESS"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert history_files(tmp_path) == (tmp_path / "a" / "z.csv", tmp_path / "b.jsonl")
    assert history_files(tmp_path / "b.jsonl") == (tmp_path / "b.jsonl",)


def test_nothing_to_read_is_refused(tmp_path):
    with pytest.raises(EventFileError, match="has no event files"):
        history_files(tmp_path)
    with pytest.raises(EventFileError, match="no such file or folder"):
        history_files(tmp_path / "none")


def lines_of(numbers):
    return "".join(f'{{"id":"e{n}","type":"A","time":{n},"key":"k{n % 5}"}}\n' for n in numbers)


def of_orders(got):
    """The number of the shard, the facts and the portions of the only stream."""
    shard, facts, sources = got
    return shard, facts, [portion for _, portions in sources for portion in portions]


@pytest.fixture
def dealt(tmp_path, monkeypatch):
    """What shards get of files that are written here, each read in parts."""
    monkeypatch.setattr("streams.readers.spans.LEAST_BYTES", 64)

    def deal(texts, shards=3, **options):
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        chosen = ReaderOptions(duplicates="keep", **options)
        histories = {"orders": History(files=history_files(tmp_path), options=chosen)}
        parts = parts_of(histories, 8)
        assert len(parts) > len(texts) or chosen.times == "line"
        found = sorted(reading(histories, shards, {})(parts), key=lambda one: one[0])
        return [of_orders(received([one for one in found if one[0].shard == shard])) for shard in range(shards)]

    return deal


def test_every_shard_gets_its_events_in_order_and_what_is_known_of_all(dealt):
    texts = {"a.jsonl": lines_of(range(50, 99)), "b.jsonl": lines_of(range(50))}
    ids = []
    for number, (shard, facts, portions) in enumerate(dealt(texts)):
        events = [event for portion in portions for event in portion.events.to_events()]
        assert (shard, facts) == (number, Facts(events=99, first_us=0, newest_us={"orders": 98}))
        assert [event.time_us for event in events] == sorted(event.time_us for event in events)
        ids += [event.id for event in events]
    assert sorted(ids) == sorted(f"e{n}" for n in range(99))


def test_the_order_of_the_files_counts_where_times_come_from_it(dealt):
    texts = {"a.jsonl": lines_of(range(9)), "b.jsonl": lines_of(range(9, 99))}
    ((_, facts, portions),) = dealt(texts, shards=1, times="line")
    assert facts == Facts(events=99, first_us=0, newest_us={"orders": 98})
    events = [event for portion in portions for event in portion.events.to_events()]
    assert [(event.id, event.time_us) for event in events] == [(f"e{n}", n) for n in range(99)]


def test_a_problem_is_told_by_the_line_of_the_whole_file(dealt):
    for _, facts, _ in dealt({"a.jsonl": lines_of(range(80)) + "nonsense\n" + lines_of(range(80, 99))}):
        assert "a.jsonl: line 81: not JSON" in facts.error


def test_rows_keep_their_order_in_all_shards_and_their_numbers(tmp_path):
    lines = (f'{{"id":"e{n}","type":"A","time":"2026-01-01T00:00:00Z","key":"k{n}"}}\n' for n in (3, 1, 2, 0, 4))
    (tmp_path / "a.jsonl").write_text("".join(lines))
    histories = {"a": History(files=history_files(tmp_path))}
    things = reading(histories, 3, {"a": [1, 2]})(parts_of(histories, 4))
    parts = [(place.source.epoch, EventBatch.from_bytes(body)) for place, body in things if isinstance(body, bytes)]
    found = [
        (number, epoch, event.id)
        for epoch, part in parts
        for number, event in zip(np.asarray(part.arrivals).tolist(), part.to_events(), strict=True)
    ]
    assert sorted(found) == [(0, 0, "e3"), (1, 0, "e1"), (2, 1, "e2"), (3, 2, "e0"), (4, 2, "e4")]
