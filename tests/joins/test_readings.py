"""Merged events of versions of a join that read its inputs otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from joins import JoinRun, finished_range, input_name, merged_id, read_join, readings_of
from streams import Event, EventBatch, KeyRange

JOIN: dict[str, Any] = {
    "inputs": [
        {"stream": "orders", "as": "o", "closed_by": "punctuation"},
        {"stream": "payments", "as": "p", "key": "data.order", "type": ["Part", "Last"], "closed_by": "punctuation"},
    ],
    "window": "1 h",
    "return": {"o": "id(o)", "p": "id(p)"},
}
OTHER = "0123456789abcdef"


def changed(**members: Any) -> dict[str, Any]:
    """The join with other members of its second input."""
    return {**JOIN, "inputs": [JOIN["inputs"][0], {**JOIN["inputs"][1], **members}]}


def merged(name: str, mark: str, time_us: int, key: str = "7", **data: Any) -> EventBatch:
    identity = merged_id("op".index(name[0]), time_us, f"{name[0]}{time_us}")
    data = {"type": "Part", "data": data}
    return EventBatch.from_events([Event(id=identity, type=name + mark, time_us=time_us, key=key, data=data)])


def found(run: JoinRun, *batches: EventBatch) -> list[Any]:
    outputs = [run.process(batch) for batch in batches]
    return [event.data for output in outputs for event in output.events.to_events()]


def test_the_readings_of_saved_events_stay_the_same() -> None:
    assert readings_of(read_join(JOIN)) == ["bced19cf710ad456", "36abbcf869e1e8aa"]


@pytest.mark.parametrize(
    "members",
    [{"key": "data.invoice"}, {"stream": "refunds"}, {"type": "Last"}, {"type": []}, {"retractions": "event"}],
)
def test_another_stream_key_type_or_kind_of_retractions_is_another_reading(members: dict[str, Any]) -> None:
    first, second = readings_of(read_join(JOIN))
    assert readings_of(read_join(changed(**members)))[0] == first
    assert readings_of(read_join(changed(**members)))[1] != second


@pytest.mark.parametrize(
    "members", [{"type": ["Last", "Part", "Last"]}, {"window": "2 h"}, {"closed_by": []}, {"as": "q", "window": "2 h"}]
)
def test_the_order_of_types_windows_and_closings_are_no_part_of_a_reading(members: dict[str, Any]) -> None:
    document = {**changed(**members), "return": {"o": "id(o)"}}
    assert readings_of(read_join(document)) == readings_of(read_join(JOIN))


def test_the_number_of_an_input_and_wait_are_parts_of_a_reading() -> None:
    readings = readings_of(read_join(JOIN))
    assert set(readings_of(read_join({**JOIN, "inputs": JOIN["inputs"][::-1]}))).isdisjoint(readings)
    assert set(readings_of(read_join({**JOIN, "wait": "auto"}))).isdisjoint(readings)


@pytest.mark.parametrize("mark", ["", ".last", ".closed", ".revocable", ".revocable.last", ".retracted", ".unkeyed"])
def test_rows_of_another_reading_only_advance_time_and_are_counted(mark: str) -> None:
    body = read_join({**JOIN, "outer": ["o", "p"]})
    run = JoinRun(body, "paid", 1)
    own = input_name("o", readings_of(body)[0])
    assert found(run, merged(own, "", 1), merged(input_name("p", OTHER), mark, 2, retracts="o1")) == []
    assert run.rows.retractions is None
    assert run.measures()["other_version"] == 1
    assert found(run, merged("p", "", 3_600_000_000)) == [{"o": "o1", "p": "p3600000000"}], "the key is not finished"
    assert found(run, merged(input_name("p", OTHER), mark, 3_600_000_001)) == []
    assert (run.measures()["stored"], run.measures()["other_version"]) == (1, 2), "the order has left its window"


@pytest.mark.parametrize("keys", [KeyRange(high=10), None], ids=["range", "again"])
def test_ranges_of_another_reading_finish_nothing(keys: KeyRange | None) -> None:
    body = read_join(JOIN)
    run = JoinRun(body, "paid", 1)
    own = input_name("p", readings_of(body)[1])
    run.process(finished_range(1, own, KeyRange(high=5), 1))
    run.process(finished_range(1, input_name("p", OTHER), keys, 1))
    assert found(run, merged("o", "", 2), merged(own, "", 3)) == [{"o": "o2", "p": "p3"}]
    assert found(run, merged("o", "", 4, "4"), merged(own, "", 5, "4")) == []
    assert (run.measures()["other_version"], run.measures()["violations"]) == (1, 1)


def test_rows_of_earlier_releases_have_no_reading_and_count() -> None:
    body = read_join(JOIN)
    run = JoinRun(body, "paid", 1)
    own = input_name("p", readings_of(body)[1])
    assert found(run, merged("o", "", 1), merged(own, ".revocable", 2)) == [{"o": "o1", "p": "p2"}]
    (back,) = found(run, merged("p", ".retracted", 3, retracts="p2"))
    assert set(back) == {"retracts"}
    run.process(finished_range(1, "p", KeyRange(high=10), 4))
    assert found(run, merged(own, "", 5)) == []
    assert run.measures()["violations"] == 1
    assert "other_version" not in run.measures()


def test_events_of_a_reading_can_be_retracted_after_saving() -> None:
    body = read_join(JOIN)
    run, names = JoinRun(body, "paid", 1), list(map(input_name, "op", readings_of(body)))
    found(run, merged(names[0], ".revocable", 1), merged(names[1], ".revocable.last", 2), merged("p:0", "", 2))
    loaded = JoinRun(body, "paid", 1)
    loaded.load(*run.dump())
    (back,) = found(loaded, merged(names[0], ".retracted", 3, retracts="o1"))
    assert set(back) == {"retracts"}
    assert loaded.measures()["other_version"] == 1
