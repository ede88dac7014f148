import orjson
import pytest

from pipeline.control import KINDS, ConstraintsOn, PatternOff, PatternOn, StreamOn, decode_control, encode_control
from pipeline.errors import ControlRecordError
from streams import DeclarationError, FieldMapping, RecordKind, StreamDeclaration

RECORDS = [
    StreamOn(
        StreamDeclaration(
            name="orders",
            key="data.order",
            event_types=("A", "End"),
            end_events=("End",),
            mapping=FieldMapping(id="nr", type="what", time="at", data=None),
        )
    ),
    PatternOn(name="p", version=3, text="PATTERN p EVENT A a"),
    PatternOff("p"),
    ConstraintsOn(name="rules", version=2, document={"prior": [["A", "B"]]}),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: KINDS[type(record)].value)
def test_a_record_comes_back_as_it_was(record):
    assert decode_control(KINDS[type(record)], encode_control(record)) == record


def test_a_declaration_may_name_only_what_it_needs():
    body = orjson.dumps({"format": 1, "declaration": {"name": "orders"}})
    assert decode_control(RecordKind.STREAM_ON, body) == StreamOn(StreamDeclaration(name="orders"))


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (RecordKind.PATTERN_OFF, {"format": 2, "name": "p"}, "format 2 is unknown"),
        (RecordKind.PATTERN_OFF, [], "format None is unknown"),
        (RecordKind.PATTERN_OFF, {"format": 1}, "name is None"),
        (RecordKind.PATTERN_ON, {"format": 1, "name": "p", "version": 0, "text": "x"}, "version is 0"),
        (RecordKind.PATTERN_ON, {"format": 1, "name": "p", "version": True, "text": "x"}, "version is True"),
        (RecordKind.PATTERN_ON, {"format": 1, "name": "p", "version": 1, "text": ""}, "text is ''"),
        (RecordKind.CONSTRAINTS_ON, {"format": 1, "name": "c", "version": 1}, "document is missing"),
        (RecordKind.STREAM_ON, {"format": 1}, "declaration is not an object"),
        (RecordKind.STREAM_ON, {"format": 1, "declaration": {}}, "no valid 'name'"),
        (RecordKind.STREAM_ON, {"format": 1, "declaration": {"name": 3}}, "expected string"),
        (RecordKind.STREAM_ON, {"format": 1, "declaration": {"name": "s", "mapping": {"x": "y"}}}, "unexpected"),
        (RecordKind.EVENTS, {"format": 1}, "not a control record"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(kind, fields, message):
    with pytest.raises(ControlRecordError, match=message):
        decode_control(kind, orjson.dumps(fields))


def test_bytes_that_are_not_json_are_refused():
    with pytest.raises(ControlRecordError, match="3 bytes are not JSON"):
        decode_control(RecordKind.PATTERN_OFF, b"\xff{}")


def test_a_declaration_that_contradicts_itself_is_refused():
    declaration = {"name": "s", "event_types": ["A"], "end_events": ["B"]}
    with pytest.raises(DeclarationError, match="end events B"):
        decode_control(RecordKind.STREAM_ON, orjson.dumps({"format": 1, "declaration": declaration}))
