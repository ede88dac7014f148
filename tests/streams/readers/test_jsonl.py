"""JSON lines."""

from pathlib import Path

import orjson
import pytest
from hypothesis import given

from streams.errors import EventFileError
from streams.event import Event
from streams.forms.plain import render_plain
from streams.readers import ReaderOptions, read_events
from tests.builders.streams import event_lists

TWO_LINES = (
    b'{"id":"e1","type":"A","time":"1970-01-01T00:00:02Z","key":"k1","data":{"customer":7,"price":1.5}}\n'
    b'{"id":"e2","type":"B","time":1000000,"key":"k2","data":{"customer":"x"},"note":"ignored"}'
)


def write(folder: Path, content: bytes) -> Path:
    """A JSON lines file with this content."""
    path = folder / "events.jsonl"
    path.write_bytes(content)
    return path


def test_lines_become_events_by_time(tmp_path: Path) -> None:
    assert read_events(write(tmp_path, TWO_LINES)) == [
        Event(id="e2", type="B", time_us=1_000_000, key="k2", data={"customer": "x"}),
        Event(id="e1", type="A", time_us=2_000_000, key="k1", data={"customer": 7, "price": 1.5}),
    ]


def test_the_key_option_names_a_path(tmp_path: Path) -> None:
    events = read_events(write(tmp_path, TWO_LINES), ReaderOptions(key="data.customer"))
    assert [event.key for event in events] == ["x", "7"]


def test_file_order_replaces_times(tmp_path: Path) -> None:
    content = TWO_LINES + b'\n{"id":"e3","type":"C","key":"k1"}\n'
    events = read_events(write(tmp_path, content), ReaderOptions(times="line"))
    assert [(event.id, event.time_us) for event in events] == [("e1", 0), ("e2", 1), ("e3", 2)]


def test_empty_lines_and_a_byte_order_mark_are_passed_over(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + TWO_LINES.replace(b"\n", b"\r\n\r\n  \n")
    assert [event.id for event in read_events(write(tmp_path, content))] == ["e2", "e1"]


def test_an_empty_file_has_no_events(tmp_path: Path) -> None:
    assert read_events(write(tmp_path, b"")) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", r"line 3: not JSON: .* column \d+; a line is"),
        (b'{"a":\xff}', "line 3: not UTF-8; name the encoding"),
        (b"[1]", "line 3: an event is a JSON object"),
        (b'{"id":null,"type":"A","time":1,"key":"k"}', "line 3: 'id' must be a non-empty text or an integer"),
        (b'{"id":"e3","time":1,"key":"k"}', "line 3: 'type' is missing"),
        (b'{"id":"e3","type":"A","time":1}', "line 3: 'key' is missing"),
        (
            b'{"id":"e3","type":"A","key":"k"}',
            'line 3: no time; give the line a "time", or number the lines .--times line',
        ),
        (b'{"id":"e3","type":"A","time":"2026-01-01T00:00:00","key":"k"}', "line 3: time .* has no time zone"),
        (b'{"id":"e3","type":"A","time":1,"key":"k","data":[]}', "line 3: 'data' must be a JSON object"),
    ],
)
def test_a_bad_line_is_named_with_its_file(tmp_path: Path, line: bytes, reason: str) -> None:
    path = write(tmp_path, TWO_LINES + b"\n" + line)
    with pytest.raises(EventFileError, match=reason) as caught:
        read_events(path)
    assert str(path) in caught.value.message
    assert caught.value.details["file"] == str(path)


def test_all_bad_lines_are_counted_and_the_first_are_shown(tmp_path: Path) -> None:
    path = write(tmp_path, TWO_LINES + b"\n{}" * 7)
    with pytest.raises(EventFileError) as caught:
        read_events(path)
    assert caught.value.details["problem_count"] == 7
    assert "7 problems" in caught.value.message
    assert "line 3:" in caught.value.message
    assert "line 8:" not in caught.value.message
    assert "and 2 more" in caught.value.message


def test_only_the_first_hundred_problems_are_kept(tmp_path: Path) -> None:
    with pytest.raises(EventFileError) as caught:
        read_events(write(tmp_path, b"{}\n" * 150))
    problems = caught.value.details["problems"]
    assert isinstance(problems, list)
    assert len(problems) == 100
    assert caught.value.details["problem_count"] == 150


@given(event_lists())
def test_written_events_are_read_back_by_time_with_ties_in_file_order(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event]
) -> None:
    content = b"\n".join(orjson.dumps(render_plain(event)) for event in events)
    path = write(tmp_path_factory.mktemp("lines"), content)
    assert read_events(path) == sorted(events, key=lambda event: event.time_us)
