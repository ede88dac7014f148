"""What a task of a project's backtest makes of a file, without Spark."""

from pipeline.chains import ChainInput, _reading
from streams import EventBatch
from streams.readers import ReaderOptions


def test_rows_keep_their_order_in_all_shards(tmp_path):
    file = tmp_path / "a.jsonl"
    lines = (f'{{"id":"e{n}","type":"A","time":"2026-01-01T00:00:00Z","key":"k{n}"}}\n' for n in (3, 1, 2, 0, 4))
    file.write_text("".join(lines))
    one = ChainInput(stream="a", file=file, options=ReaderOptions(), routes={})
    parts = [EventBatch.from_bytes(body) for place, body in _reading(3)((1, one)) if place.stream]
    assert parts
    batch = EventBatch.joined(parts)
    assert batch.arrivals is not None
    found = sorted(zip(batch.arrivals.tolist(), (event.id for event in batch.to_events()), strict=True))
    assert [name for _, name in found] == ["e3", "e1", "e2", "e0", "e4"]
