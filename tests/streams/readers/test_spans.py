"""The parts of a file are the file."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams import EventFileError
from streams.readers import ReaderOptions, iterate_batches, line_spans

MARK = b"\xef\xbb\xbf"
OPTIONS = ReaderOptions()


def line(number, padding=0):
    return b'{"id":"e%d","type":"A","time":%d,"key":"k","data":{"p":"%s"}}' % (number, number, b"x" * padding)


def events_of(path, options=OPTIONS):
    return [event for batch in iterate_batches(path, options, rows=7) for event in batch.to_events()]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr("streams.readers.spans.LEAST_BYTES", 16)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    paddings=st.lists(st.one_of(st.none(), st.integers(0, 300)), min_size=1, max_size=30),
    end=st.sampled_from([b"\n", b"\r\n"]),
    last=st.booleans(),
    mark=st.booleans(),
    parts=st.integers(1, 9),
)
def test_parts_hold_every_line_once_and_whole(tmp_path, paddings, end, last, mark, parts):
    lines = [b"" if padding is None else line(number, padding) for number, padding in enumerate(paddings)]
    path = tmp_path / "events.jsonl"
    path.write_bytes(MARK * mark + end.join(lines) + end * last)
    spans = line_spans(path, OPTIONS, parts)
    assert len(spans) <= parts
    if spans:
        assert [begin for begin, _ in spans[1:]] == [stop for _, stop in spans[:-1]]
        found = [event for span in spans for event in events_of(path, replace(OPTIONS, span=span))]
        assert found == events_of(path)


def test_parts_are_about_equal(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n".join(line(number) for number in range(1_000)))
    spans = line_spans(path, OPTIONS, 4)
    assert len(spans) == 4
    assert max(end - begin for begin, end in spans) < 1.1 * min(end - begin for begin, end in spans)


def test_a_mark_of_byte_order_within_a_file_is_refused_in_parts_too(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n".join(MARK + line(number) for number in range(9)))
    assert line_spans(path, OPTIONS, 9) == [(0, path.stat().st_size)]
    for span in (None, (0, path.stat().st_size)):
        with pytest.raises(EventFileError, match="not JSON"):
            events_of(path, replace(OPTIONS, span=span))


def test_what_is_read_as_a_whole_has_no_parts(tmp_path):
    text = b"\n".join(line(number) for number in range(99))
    (tmp_path / "events.jsonl").write_bytes(text)
    (tmp_path / "events.jsonl.gz").write_bytes(gzip.compress(text))
    (tmp_path / "events.csv").write_bytes(text)
    assert line_spans(tmp_path / "events.jsonl", OPTIONS, 2)
    for name, options in (
        ("events.jsonl.gz", OPTIONS),
        ("events.csv", OPTIONS),
        ("none.jsonl", OPTIONS),
        ("events.jsonl", ReaderOptions(times="line")),
        ("events.jsonl", ReaderOptions(max_bytes=99)),
    ):
        assert line_spans(tmp_path / name, options, 2) == []
