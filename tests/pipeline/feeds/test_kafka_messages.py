import orjson
import pytest

from pipeline.feeds.kafka_messages import read_message, read_plain
from streams import EventRejected, StreamDeclaration, TimeForm, parse_cloudevent
from streams.readers import Columns, ReaderOptions

BINARY = [
    ("ce_specversion", b"1.0"),
    ("ce_id", b"e1"),
    ("ce_source", b"/shop"),
    ("ce_type", b"A"),
    ("ce_time", b"2026-01-01T00:00:00Z"),
    ("ce_subject", "schlüssel".encode()),
    ("content-type", b"application/json"),
    ("trace", b"\xff"),
]


def test_a_value_is_the_event_as_it_stands():
    assert read_message(b' {"id": 1}', [("content-type", b"application/cloudevents+json")], 99) == (b' {"id": 1}', None)


def test_headers_are_the_attributes_of_a_binary_cloudevent():
    body, fault = read_message(b'{"n": 1}', BINARY, 99)
    assert fault is None
    event = parse_cloudevent(orjson.loads(body), StreamDeclaration(name="orders"))
    assert (event.id, event.type, event.key, event.time_us) == ("e1", "A", "schlüssel", 1_767_225_600_000_000)
    assert event.data == {"n": 1}


def test_a_binary_cloudevent_may_have_no_data():
    body, fault = read_message(None, BINARY, 99)
    assert (fault, "data" in orjson.loads(body)) == (None, False)


@pytest.mark.parametrize(
    ("value", "headers", "reason"),
    [
        (None, [], "tombstone"),
        (b"x" * 100, [], "more than 99 bytes"),
        (b"{", BINARY, "not JSON"),
        (b"{}", [*BINARY, ("ce_id", b"\xff")], "ce_id is not UTF-8"),
    ],
)
def test_what_is_no_event_has_a_fault(value, headers, reason):
    body, fault = read_message(value, headers, 99)
    assert fault is not None
    assert reason in fault
    assert len(body) <= 4_000


def test_data_that_is_not_json_is_left_to_the_rules_for_cloudevents():
    body, fault = read_message(b"<a/>", [*BINARY, ("content-type", b"text/xml")], 99)
    assert fault is None
    assert orjson.loads(body)["datacontenttype"] == "text/xml"


MAPPING = ReaderOptions(key="order", columns=Columns(type="what", time="at"), clock=TimeForm(zone="+02:00"))
KEY = "data.order"


def test_plain_json_of_strangers_is_read_by_a_mapping():
    body, fault = read_plain(b'{"what": "A", "at": "2026-01-01 02:00", "order": "o1", "n": 1}', "t:0:7", MAPPING, KEY)
    assert fault is None
    event = parse_cloudevent(orjson.loads(body), StreamDeclaration(name="orders", key="data.order"))
    assert (event.id, event.type, event.key, event.time_us) == ("t:0:7", "A", "o1", 1_767_225_600_000_000)
    assert event.data["n"] == 1


def test_the_key_of_strangers_goes_where_the_stream_has_it_for_the_type():
    mapping = ReaderOptions(
        key={"A": "order", "*": "ref"}, columns=Columns(type="what", time="at"), clock=TimeForm(zone="+02:00")
    )
    stream = StreamDeclaration(name="orders", key={"A": "data.order", "B": "subject"})
    for event_type in ("A", "B"):
        line = orjson.dumps({"what": event_type, "at": "2026-01-01 02:00", "order": "o1", "ref": "r1"})
        event = parse_cloudevent(orjson.loads(read_plain(line, "t:0:7", mapping, stream.key)[0]), stream)
        assert event.key == ("o1" if event_type == "A" else "r1")
    body, _ = read_plain(b'{"what": "C", "at": "2026-01-01 02:00", "ref": "r1"}', "t:0:7", mapping, stream.key)
    with pytest.raises(EventRejected, match="type 'C' has no correlation key here"):
        parse_cloudevent(orjson.loads(body), stream)


@pytest.mark.parametrize("body", [b'{"specversion": "1.0"}', b"{", b"[]"])
def test_cloudevents_and_what_is_no_object_stay_as_they_are(body):
    assert read_plain(body, "t:0:7", MAPPING, KEY) == (body, None)


def test_a_column_that_is_missing_is_a_fault():
    _, fault = read_plain(b'{"what": "A", "order": "o1"}', "t:0:7", MAPPING, KEY)
    assert fault is not None
    assert "at" in fault
