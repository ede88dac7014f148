"""Integers beyond signed 64 bits are refused by every reader, as they are by the service."""

from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streams import EventFileError, StreamDeclaration, check_extent, decode_json, parse_columns
from streams.readers import Columns, ReaderOptions, RowLayout, iterate_events, raw_rows, read_batch, read_events

LINE = b'{"id":"%d","type":"A","time":"2026-01-01T09:00:00Z","key":"k","data":{"span":[%d]}}\n'
TOO_LARGE = [2**63, 2**64 - 1, 2**64, 123456789012345678901234567890, -(2**63) - 1, 10**300]


def write(folder: Path, *numbers: int) -> Path:
    path = folder / "e.jsonl"
    path.write_bytes(b"".join(LINE % (1 + place, number) for place, number in enumerate(numbers)))
    return path


@pytest.mark.parametrize("number", TOO_LARGE, ids=lambda number: number.bit_length())
@pytest.mark.parametrize("read", [read_events, read_batch, lambda path: list(iterate_events(path))])
def test_they_are_refused_with_line_and_member(tmp_path, number, read):
    with pytest.raises(EventFileError, match=r"line 2: .* beyond 64 bits in data\.span\.0: .* send it as a text"):
        read(write(tmp_path, 1, number))


@pytest.mark.parametrize("number", TOO_LARGE, ids=lambda number: number.bit_length())
def test_named_columns_do_not_round_them(tmp_path, number):
    layout = RowLayout(mapping=ReaderOptions(columns=Columns(type="type"), key="key"))
    (row,) = raw_rows(write(tmp_path, number), "jsonl", layout)
    assert "beyond 64 bits" in (row.fault or "")


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 0, 2**53 + 1])
def test_others_are_exact(tmp_path, number):
    path = write(tmp_path, number)
    assert [event.data for event in read_events(path)] == [{"span": [number]}]
    assert read_batch(path).to_events() == read_events(path)


def test_the_columns_of_parquet_are_checked_too(tmp_path):
    path = tmp_path / "e.parquet"
    row = {"id": ["1"], "type": ["A"], "time": ["2026-01-01T09:00:00Z"], "key": ["k"]}
    pq.write_table(pa.table({**row, "n": pa.array([2**64 - 1], pa.uint64())}), path)
    with pytest.raises(EventFileError, match=r"beyond 64 bits in data\.n"):
        list(iterate_events(path))


def test_a_batch_with_one_is_read_one_by_one():
    usual = {"id": "1", "type": "A", "time": "2026-01-01T09:00:00Z", "key": "k"}
    objects = [{**usual, "data": {"span": number}} for number in (1, 2**63)]
    assert parse_columns(objects[:1], StreamDeclaration(name="s", key="key")) is not None
    assert parse_columns(objects, StreamDeclaration(name="s", key="key")) is None


def test_decoding_keeps_them():
    assert decode_json(b"[18446744073709551614, 1.5]") == [2**64 - 2, 1.5]
    deep = b"[" * 1000 + b"18446744073709551616" + b"]" * 1000
    with pytest.raises(Exception, match="levels deep"):
        check_extent(decode_json(deep))
    with pytest.raises(orjson.JSONDecodeError):
        decode_json(b"[18446744073709551614")
