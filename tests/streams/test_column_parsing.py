"""Reading a batch by columns gives the same events as reading object by object, or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams import (
    EventBatch,
    EventRejected,
    FieldMapping,
    StreamDeclaration,
    check_extent,
    parse_cloudevent,
    parse_columns,
    parse_each,
    parse_plain,
)
from streams.event import Event

ORDERS = StreamDeclaration(name="orders")
KEYED = StreamDeclaration(name="orders", key="data.order", event_types=("A", "B"))
MAPPED = StreamDeclaration(name="orders", key="ref.k", mapping=FieldMapping(id="ref.i", type="t", time="w", data=None))
BY_TYPE = StreamDeclaration(name="orders", key={"A": "data.order", "B": "subject", "*": "key"})
FEW_TYPES = StreamDeclaration(name="orders", key={"A": "extra", "B": "data.order"})
DECLARATIONS = [ORDERS, KEYED, MAPPED, BY_TYPE, FEW_TYPES]

GOOD: dict[str, Any] = {
    "id": "e1",
    "type": "A",
    "time": "2026-01-01T09:30:00Z",
    "key": "k",
    "data": {"order": "o", "v": 1},
}
CLOUD: dict[str, Any] = {**GOOD, "specversion": "1.0", "source": "/shop", "subject": "k"}
NESTED: dict[str, Any] = {"ref": {"i": "e1", "k": 7}, "t": "A", "w": 5, "v": [1, {"x": None}]}

TIMES = [
    "2026-01-31T10:30:00.25+01:00",
    "2026-01-31t10:30:00Z",
    "2026-01-31 10:30:00Z",
    "2026-01-31T10:30:00",
    "2026-01-31T10:30:00.1234567Z",
    "2026-02-30T10:30:00Z",
    "2026-01-31T24:00:00Z",
    "2026-01-31T10:60:00Z",
    "2016-12-31T23:59:60Z",
    "2026-01-31T10:30:00+24:00",
    "2026-01-31T10:30:00-23:59",
    "2026-01-31T10:30:00+10:60",
    "2026-01-31T10:30:00-00:00",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59.999999-00:01",
    "1677-01-01T00:00:00Z",
    "2026-01-31T10:30:00Z\n",
    "2026-01-31",
    "",
    0,
    -62_135_596_800_000_000,
    -62_135_596_800_000_001,
    2**63,
    1.5,
    True,
    None,
]
ODD: list[Any] = [
    None,
    "",
    " ",
    "x",
    "\x00",
    "é",
    "\ud800",
    0,
    7,
    -1,
    2**63,
    2**64,
    -(2**63) - 1,
    1.5,
    True,
    [],
    [1],
    {},
    {"a": 1},
]
ODD += [{"a": [2**64]}, {"order": ""}, {"order": 3}, {"order": None}, {"order": {"x": 1}}, {"a": "\udfff"}]
MEMBERS = ["id", "type", "time", "key", "subject", "data", "source", "specversion", "datacontenttype", "data_base64"]
MEMBERS += ["extra", "ref", "t", "w"]

members = st.sampled_from(MEMBERS)
changes = st.one_of(
    st.tuples(st.just("set"), members, st.sampled_from(ODD)),
    st.tuples(st.just("set"), st.sampled_from(["time", "w"]), st.sampled_from(TIMES)),
    st.tuples(
        st.just("set"), st.just("datacontenttype"), st.sampled_from(["application/json", "text/xml", "a/b+json"])
    ),
    st.tuples(st.just("set"), st.just("type"), st.sampled_from("ABC")),
    st.tuples(st.just("drop"), members, st.none()),
)


@st.composite
def batches(draw: st.DrawFn) -> list[object]:
    usual = draw(st.sampled_from([GOOD, CLOUD, NESTED]))
    found: list[object] = []
    for _ in range(draw(st.integers(0, 4))):
        value = dict(draw(st.sampled_from([usual, usual, usual, GOOD, CLOUD])))
        for how, name, new in draw(st.lists(changes, max_size=2)):
            value.pop(name, None)
            value |= {name: new} if how == "set" else {}
        found.append(draw(st.sampled_from([value] * 9 + [None, 3])))
    return found


def _checked(value: object, declaration: StreamDeclaration) -> Event:
    check_extent(value)
    is_cloudevent = isinstance(value, dict) and "specversion" in value
    return parse_cloudevent(value, declaration) if is_cloudevent else parse_plain(value, declaration)


def one_by_one(objects: list[object], declaration: StreamDeclaration) -> EventBatch | None:
    """The batch of all objects; None when one of them is refused."""

    parsed = parse_each(objects, lambda value: _checked(value, declaration))
    return None if parsed.rejections else EventBatch.from_events([event for _, event in parsed.events])


@settings(max_examples=600)
@given(batches(), st.sampled_from(DECLARATIONS))
@example([{**GOOD, "time": time} for time in TIMES[:1]], ORDERS)
@example([{**GOOD, "time": 5}, {**GOOD, "time": "2026-01-31T10:30:00Z"}], ORDERS)
@example([{**GOOD, "subject": 2**64}], ORDERS)
@example([{**GOOD, "subject": "s", "key": 2**64}], ORDERS)
@example([{**CLOUD, "key": 2**64}], KEYED)
@example([{**GOOD, "key": 2**64}], BY_TYPE)
@example([{**CLOUD, "type": "B"}, {**CLOUD, "subject": 2**64}], BY_TYPE)
@example([{**GOOD, "type": "C"}], FEW_TYPES)
def test_columns_say_what_one_by_one_says(objects: list[object], declaration: StreamDeclaration) -> None:
    batch = parse_columns(objects, declaration)
    if batch is not None:
        expected = one_by_one(objects, declaration)
        assert expected is not None
        assert batch.columns.equals(expected.columns)


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("usual", [GOOD, CLOUD])
def test_a_time_is_read_as_one_by_one(usual: dict[str, Any], time: object) -> None:
    objects: list[object] = [{**usual, "time": time}]
    batch = parse_columns(objects, ORDERS)
    if batch is not None:
        expected = one_by_one(objects, ORDERS)
        assert expected is not None
        assert batch.columns.equals(expected.columns)


@pytest.mark.parametrize(
    ("objects", "declaration"),
    [
        ([GOOD, {**GOOD, "id": 7, "time": "2026-01-31T10:30:00.25+01:00"}], ORDERS),
        ([CLOUD, {**CLOUD, "data": None, "datacontenttype": "application/json"}], ORDERS),
        ([{**CLOUD, "data": {"order": 5, "items": [{"sku": "a"}]}}], KEYED),
        ([{**GOOD, "time": 1_700_000_000_000_000, "more": {"deep": [1]}}], ORDERS),
        ([NESTED, NESTED], MAPPED),
        ([GOOD, {**GOOD, "type": "B"}, {**GOOD, "type": "C", "data": None}], BY_TYPE),
        ([CLOUD, {**CLOUD, "type": "B", "data": {}}], BY_TYPE),
    ],
)
def test_usual_batches_are_read_by_columns(objects: list[object], declaration: StreamDeclaration) -> None:
    batch, expected = parse_columns(objects, declaration), one_by_one(objects, declaration)
    assert batch is not None
    assert expected is not None
    assert batch.columns.equals(expected.columns)


def test_what_is_refused_is_not_read_by_columns() -> None:
    deep: Any = {}
    for _ in range(200):
        deep = {"a": deep}
    for bad in ({**GOOD, "data": deep}, {**GOOD, "extra": 2**64}, {**GOOD, "id": ""}, {**GOOD, "data": []}):
        assert parse_columns([GOOD, bad], ORDERS) is None
        with pytest.raises(EventRejected):
            _checked(bad, ORDERS)
