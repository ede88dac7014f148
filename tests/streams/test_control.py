"""Control records, and their golden bytes: what a release has written, every later one reads and writes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from streams import CLOSED_US, LATEST_US, FieldMapping, KeyRange, RecordKind, StreamDeclaration, WorkBudget
from streams.errors import ControlRecordError, DeclarationError
from streams.log.control import (
    CONTROL_RECORDS,
    Ask,
    ClosedKeys,
    ConstraintsOn,
    ControlRecord,
    KeysClosed,
    LatenessChange,
    OperatorOff,
    OperatorOn,
    OperatorPause,
    PatternOff,
    PatternOn,
    PatternPause,
    Punctuation,
    StreamOff,
    StreamOn,
    TableOff,
    TableOn,
    TableRow,
    Tick,
    TraceEnd,
    decode_control,
    encode_control,
)
from streams.log.records import Definition, Input
from streams.tables import TableForm, TableVersion

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
    StreamOff("orders"),
    PatternOn(name="p", version=3, text="PATTERN p EVENT SEQ(Ångström a, B b [x > 3])"),
    PatternOff("p"),
    PatternPause("p"),
    OperatorOn(
        Definition(
            kind="aggregate", name="logins", version=2, inputs=(Input("orders", "customer"),), body={"n": "count()"}
        ),
        start="migrate",
    ),
    OperatorOff("aggregate", "logins"),
    OperatorPause("aggregate", "logins"),
    Tick(time_us=1_767_225_600_000_000, cause="clock"),
    TraceEnd(key="o-1", time_us=1_767_225_600_000_000),
    Punctuation(before_us=1_767_225_600_000_000, key="o-1"),
    Ask(id="5f0c", operator="pattern", route="customer", question={"about": "traces", "limit": 20}),
    ConstraintsOn(name="orders", version=2, document={"constraints": [{"prior": ["A", "B"]}], "end": ["End"]}),
    TableOn(
        TableVersion(
            name="customers",
            version=2,
            form=TableForm(key=("id",), columns={"id": "text", "limit": "number"}),
            digest="3ec564f18254390db73389976b401266fc8d1fb3",
            rows=3,
            since_us=1_767_225_600_000_000,
        )
    ),
    TableRow(name="customers", version=2, key="c1", row=("c1", 12.5)),
    TableOff("customers"),
    KeysClosed(
        (ClosedKeys(input="o", to=-3, time_us=5, seen={"events": 4}), ClosedKeys(input="p", to=None, time_us=6))
    ),
    LatenessChange(number=4, bound_us=12_500_000, seen={"events": 4_100, "largest_us": 10_000_000, "beyond": 1}),
]
BUDGET = WorkBudget(per_event=1, per_trace=20, traces=0, forgiven_after=300)
GOLDEN = Path(__file__).parent / "golden"
BY_KIND = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.KIND.value)


@BY_KIND
def test_a_record_comes_back_as_it_was(record: ControlRecord) -> None:
    assert decode_control(record.KIND, encode_control(record)) == record


def test_a_tick_that_closes_a_log_has_a_time_after_all_others():
    for number in range(3):
        closing = Tick(time_us=CLOSED_US + number, cause="events")
        assert decode_control(closing.KIND, encode_control(closing)) == closing
    assert CLOSED_US > LATEST_US


def test_a_budget_is_written_where_it_is_not_the_usual_one():
    plain = PatternOn(name="p", version=3, text="PATTERN p EVENT A a")
    own = replace(plain, budget=BUDGET)
    assert b"work" not in encode_control(plain)
    assert orjson.loads(encode_control(own))["work"] == BUDGET.to_json()
    assert decode_control(RecordKind.PATTERN_ON, encode_control(own)) == own


@pytest.mark.parametrize(
    "work", [{"traces": -1}, {"per_trace": 0}, {"per_event": "x"}, {"more": 1}, [1], {"traces": True}]
)
def test_a_budget_that_cannot_be_is_refused(work):
    body = orjson.dumps({"format": 1, "name": "p", "version": 1, "text": "PATTERN p EVENT A a", "work": work})
    with pytest.raises(ControlRecordError, match="pattern-on record: work: "):
        decode_control(RecordKind.PATTERN_ON, body)


@BY_KIND
def test_the_bytes_of_the_first_format_are_read_and_written(record: ControlRecord) -> None:
    kind = record.KIND
    golden = (GOLDEN / f"{kind.value}-v1.json").read_bytes()
    assert decode_control(kind, golden) == record
    assert encode_control(record) == golden


def test_a_pattern_that_constraints_do_not_end_says_so_and_others_say_nothing() -> None:
    record = PatternOn(name="p", version=3, text="PATTERN p EVENT A a", is_guarded=False)
    body = encode_control(record)
    assert orjson.loads(body)["constraints"] == "off"
    assert decode_control(RecordKind.PATTERN_ON, body) == record
    assert "constraints" not in orjson.loads(encode_control(PatternOn(name="p", version=3, text="x")))


def test_a_pattern_that_migrates_or_has_a_route_says_so_and_others_say_nothing() -> None:
    record = PatternOn(name="p", version=3, text="PATTERN p EVENT A a", start="migrate", route="customer")
    body = encode_control(record)
    assert (orjson.loads(body)["start"], orjson.loads(body)["route"]) == ("migrate", "customer")
    assert decode_control(RecordKind.PATTERN_ON, body) == record
    plain = orjson.loads(encode_control(PatternOn(name="p", version=3, text="x")))
    assert {"start", "route"}.isdisjoint(plain)


@pytest.mark.parametrize(
    "record",
    [
        TraceEnd(key="k"),
        Punctuation(key="k"),
        Punctuation(before_us=5),
        Punctuation(keys=("j", "k")),
        Punctuation(range=KeyRange(low=-1, high=7)),
        Punctuation(range=KeyRange(high=7), by="order", time_us=5),
    ],
)
def test_what_a_record_leaves_open_stays_open(record: ControlRecord) -> None:
    assert decode_control(record.KIND, encode_control(record)) == record


def test_every_kind_but_events_has_a_record_and_a_golden_file() -> None:
    assert {*(record.KIND for record in CONTROL_RECORDS), RecordKind.EVENTS} == set(RecordKind)
    assert {path.name for path in GOLDEN.glob("*.json")} == {
        f"{record.KIND.value}-v1.json" for record in CONTROL_RECORDS
    }


def test_a_declaration_may_name_only_what_it_needs() -> None:
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
        (
            RecordKind.PATTERN_ON,
            {"format": 1, "name": "p", "version": 1, "text": "x", "constraints": ["off"]},
            "it must be 'on' or 'off'",
        ),
        (
            RecordKind.PATTERN_ON,
            {"format": 1, "name": "p", "version": 1, "text": "x", "start": "soon"},
            "it must be 'fresh' or 'migrate'",
        ),
        (RecordKind.PATTERN_ON, {"format": 1, "name": "p", "version": 1, "text": "x", "route": ""}, "route is ''"),
        (RecordKind.TICK, {"format": 1, "cause": "events"}, "time is None"),
        (RecordKind.TICK, {"format": 1, "time": 2**62 - 1, "cause": "events"}, "in the years 1 to 9999"),
        (RecordKind.TICK, {"format": 1, "time": 5, "cause": "moon"}, "it must be 'events' or 'clock'"),
        (RecordKind.LATENESS, {"format": 1, "number": 1, "bound": -1}, "bound is -1; it must be a whole number"),
        (RecordKind.LATENESS, {"format": 1, "number": True, "bound": 1}, "number is True"),
        (RecordKind.LATENESS, {"format": 1, "number": 1, "bound": 1, "seen": []}, "seen is not a JSON object"),
        (RecordKind.TRACE_END, {"format": 1, "time": 5}, "key is None"),
        (RecordKind.PUNCTUATION, {"format": 1, "keys": []}, "neither a time before nor a key"),
        (RecordKind.PUNCTUATION, {"format": 1, "keys": ["a", ""]}, "a list of texts that are not empty"),
        (RecordKind.TRACE_END, {"format": 1, "key": "k", "time": "now"}, "time is 'now'"),
        (RecordKind.PUNCTUATION, {"format": 1, "before": None}, "neither a time before nor a key"),
        (RecordKind.ASK, {"format": 1, "id": "", "kind": "pattern", "question": {}}, "id is ''"),
        (RecordKind.ASK, {"format": 1, "id": "q", "kind": "pattern", "question": 1}, "question is not a JSON object"),
        (RecordKind.CONSTRAINTS_ON, {"format": 1, "name": "c", "version": 1}, "document is not a JSON object"),
        (
            RecordKind.CONSTRAINTS_ON,
            {"format": 1, "name": "c", "version": 1, "document": ["prior(A, B)"]},
            "document is not a JSON object",
        ),
        (RecordKind.OPERATOR_ON, {"format": 1, "kind": "join", "name": "j", "version": 1}, "inputs are None"),
        (
            RecordKind.OPERATOR_ON,
            {"format": 1, "kind": "j", "name": "j", "version": 1, "inputs": [1]},
            "list of objects",
        ),
        (RecordKind.OPERATOR_OFF, {"format": 1, "name": "j"}, "kind is None"),
        (RecordKind.EVENTS, {"format": 1}, "not a control record"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(kind: RecordKind, fields: Any, message: str) -> None:
    with pytest.raises(ControlRecordError, match=message):
        decode_control(kind, orjson.dumps(fields))


def test_bytes_that_are_not_json_are_refused() -> None:
    with pytest.raises(ControlRecordError, match="3 bytes are not JSON"):
        decode_control(RecordKind.PATTERN_OFF, b"\xff{}")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "is a JSON object, got None"),
        ({"declaration": {"name": "s", "event_types": ["A"], "end_events": ["B"]}}, "end events B"),
    ],
)
def test_a_declaration_that_is_wrong_is_refused(members: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        decode_control(RecordKind.STREAM_ON, orjson.dumps({"format": 1, **members}))
