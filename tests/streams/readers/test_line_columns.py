"""Reading JSON lines by columns gives the same events as reading line by line, or nothing."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from unittest import mock

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams import EventFileError
from streams.event import Event
from streams.forms.plain import render_plain
from streams.readers import ReaderOptions, iterate_batches, iterate_events
from streams.readers.jsonl import read_jsonl
from streams.readers.line_columns import read_line_columns
from streams.time_forms import LEAST_MICROSECONDS, LEAST_MILLISECONDS, LEAST_SECONDS
from tests.builders.streams import event_lists

PATH = Path("events.jsonl")
PLAIN = ReaderOptions()
OPTIONS = [
    PLAIN,
    ReaderOptions(key="data.customer"),
    ReaderOptions(key="data.customer_number"),
    ReaderOptions(key="customer_number"),
    ReaderOptions(key="customer"),
    ReaderOptions(times="line"),
    ReaderOptions(keeps_order=True),
    ReaderOptions(key="id"),
    ReaderOptions(key="data.a.b"),
    ReaderOptions(key={"A": "data.customer", "B": "customer_number", "*": "key"}),
    ReaderOptions(key={"A": "key", "C": "customer"}),
    ReaderOptions(key={"A": "data.a.b", "*": "key"}),
    ReaderOptions(key={"A": "data.customer", "*": "data.customer_number"}, times="line"),
]
GOOD = [
    b'{"id":"e1","type":"A","time":"1970-01-01T00:00:02.5+01:00","key":"k1","data":{"customer":7,"price":-1.50}}',
    b' {"data": {"a": [1, {"b": null}, "\\n"], "customer": "c"}, "key":"\xc3\xa9", "id":17,\t"time":9, "type":"B" }\r',
    b'{"customer":"top","customer_number":"n1","data":{"customer":1,"customer_number":5},"key":0,"id":1,"type":"B","time":1}',
    b'{"id":"e3","type":"C","time":-5,"key":9,"note":[true,false,[]],"customer":"c","extra":{}}',
    b'{"id":"e4","type":"C","time":"2024-02-29T23:59:59Z","key":"k","data":{"customer":"","customer_no":1}}',
]
MEMBERS = [
    b'"id":"e9"',
    b'"id":12',
    b'"id":-3',
    b'"id":012',
    b'"id":""',
    b'"id":null',
    b'"id":"\\u0041"',
    b'"id":"\\ud800"',
    b'"type":"A"',
    b'"type":5',
    b'"type":"a\\"b"',
    b'"time":0',
    b'"time":253402300800000000',
    b'"time":1e3',
    b'"time":12345678901234567890',
    b'"time":"2023-02-29T00:00:00Z"',
    b'"time":"2026-01-31t10:30:00Z"',
    b'"time":"2026-01-31T10:30:00.1234567Z"',
    b'"time":"2016-12-31T23:59:60Z"',
    b'"time":"2026-01-31T10:30:00"',
    b'"time":"9999-12-31T23:59:59.999999-00:01"',
    b'"time":"0001-01-01T00:00:00+01:00"',
    b'"time":"2026-01-31T10:30:00-23:59"',
    b'"time":"2026-01-31T10:30:00.Z"',
    b'"key":"k"',
    b'"key":1.5',
    b'"\\u006bey":"k"',
    b'"customer":"c"',
    b'"data":{}',
    b'"data":null',
    b'"data":[]',
    b'"data":{"customer":"c","customer":"d"}',
    b'"data":{"customer":1,}',
    b'"data":{"customer":1 "b":2}',
    b'"data":{"customer":[1,[2,{"x":-0}],01]}',
    b'"data":{"customer":18446744073709551616}',
    b'"data":{"x":"\\u00e9\x00"}',
    b'"data":{"x":1.,"customer":1}',
    b'"data":{"x":tru,"customer":1}',
    b'"data":{"x":"\xff","customer":1}',
    b'"data":' + b'{"a":' * 70 + b"1" + b"}" * 70,
    b'"other":Infinity',
]
SIGNS = st.sampled_from(
    [b"", b" ", b",", b":", b'"', b"\\", b"{", b"}", b"[", b"]", b"0", b"-", b".", b"e", b"\n", b"\x0b"]
)


def by_lines(content: bytes, options: ReaderOptions) -> list[Event] | None:
    try:
        return read_jsonl(io.BufferedReader(io.BytesIO(content)), PATH, options)
    except EventFileError:
        return None


def by_columns(content: bytes, options: ReaderOptions) -> list[Event] | None:
    batch = read_line_columns(io.BufferedReader(io.BytesIO(content)), PATH, options)
    return None if batch is None else batch.to_events()


@st.composite
def lines(draw):
    """A line, mostly nearly right."""
    line = draw(st.sampled_from(GOOD))
    if draw(st.booleans()):
        members = draw(st.lists(st.sampled_from(MEMBERS), min_size=3, max_size=6))
        line = b"{" + b",".join(members) + b"}"
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(line)))
        line = line[:place] + draw(SIGNS) + line[place + draw(st.integers(0, 1)) :]
    return line


@given(st.lists(lines(), max_size=4), st.sampled_from(OPTIONS))
@example([GOOD[0], GOOD[0]], PLAIN)
@example([b"\xef\xbb\xbf" + GOOD[0], b"", GOOD[1]], PLAIN)
@settings(max_examples=600)
def test_columns_are_the_lines_or_nothing(content, options):
    text = b"\n".join(content)
    wanted, found = by_lines(text, options), by_columns(text, options)
    assert found is None or found == wanted


@pytest.mark.parametrize("least", [LEAST_SECONDS, LEAST_MILLISECONDS, LEAST_MICROSECONDS])
@pytest.mark.parametrize("beside", [-1, 0, 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_at_the_limits_of_their_units_are_read_alike(least, beside, sign):
    line = b'{"id":"e","type":"A","key":"k","data":{},"time":%d}' % (sign * (least + beside))
    assert by_columns(line, PLAIN) == by_lines(line, PLAIN)


@given(st.lists(lines(), max_size=6), st.sampled_from(OPTIONS), st.integers(1, 4))
@example([GOOD[0], b'{"specversion":"1.0","id":"e2","source":"s","type":"A","time":"1970-01-01T00:00:02Z"}'], PLAIN, 1)
@example([*GOOD[:1] * 3, b"{", *GOOD[:1]], PLAIN, 2)
@settings(max_examples=150)
def test_batches_are_the_events_one_by_one(content, options, rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / PATH
        path.write_bytes(b"\n".join(content))
        wanted = list(outcome(iterate_events(path, options)))
        with mock.patch("streams.readers.one_by_one._CHUNK_BYTES", 100):
            batches = list(outcome(iterate_batches(path, options, rows=rows)))
    found = [one for batch in batches for one in ([batch] if isinstance(batch, str) else batch.to_events())]
    refused = [one for one in wanted if isinstance(one, str)]
    assert [one for one in found if isinstance(one, str)] == refused
    assert found == wanted or refused  # of a file that is refused some events may be given, or none
    assert all(isinstance(batch, str) or 1 <= len(batch) <= rows for batch in batches)


def outcome(found):
    """What is given, and at last the words of what is raised."""
    try:
        yield from found
    except EventFileError as error:
        yield error.message


@given(event_lists())
def test_what_is_written_is_read_by_columns(events):
    text = b"\n".join(orjson.dumps(render_plain(event)) for event in events)
    assert by_columns(text, PLAIN) == sorted(events, key=lambda event: event.time_us)


@pytest.mark.parametrize("options", OPTIONS[:7])
def test_good_lines_are_read_by_columns(options):
    text = b"\n".join(GOOD[:1])
    assert by_columns(text, options) == by_lines(text, options)


def test_a_line_longer_than_a_chunk_and_many_chunks(monkeypatch):
    monkeypatch.setattr("streams.readers.line_columns._CHUNK_BYTES", 16)
    text = b"\n".join(b'{"id":"e%d","type":"A","time":%d,"key":"k"}' % (n, 50 - n) for n in range(50))
    assert by_columns(text, PLAIN) == by_lines(text, PLAIN)


def test_files_of_many_odd_lines_are_left_to_the_other_reader(monkeypatch):
    monkeypatch.setattr("streams.readers.line_columns._MOST_UNUSUAL", 1)
    odd = [b'{"id":"%d\\n","type":"A","time":0,"key":"k"}' % n for n in range(2)]
    assert by_columns(odd[0], PLAIN) == by_lines(odd[0], PLAIN) != []
    assert by_columns(b"\n".join([*odd, b""]), PLAIN) is None
