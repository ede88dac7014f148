"""Aggregates in shards: retractions, late events, transactions, limits, and what is refused because of the stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import orjson
import pytest

from shards import COUNTED as COUNTED_KINDS
from shards import InlineShards, OperatorRefused, ShardState
from shards.kinds.aggregates import AggregateKind
from streams import EARLIEST_US, Event, EventBatch, OperatorOn, StreamDeclaration, StreamOn

SECOND_US = 1_000_000
KIND = AggregateKind()
EVERY_PLACE = pytest.mark.parametrize(("by", "shards"), [(["key"], 1), (["g"], 1), ([], 1), (["g"], 4), ([], 4)])


def event(number: int, at_s: int, kind: str = "A", key: str = "k", **data: Any) -> Event:
    return Event(id=f"e{number}", type=kind, time_us=at_s * SECOND_US, key=key, data=data)


def begun(document: Mapping[str, Any], shards: int = 1, **declared: Any) -> InlineShards:
    """Shards in which an aggregate over the stream ``x`` runs."""
    source = StreamDeclaration(name="x", **declared)
    definition = replace(KIND.read({"name": "made", "of": "x", **document}, lambda _: source), version=1)
    run = InlineShards(shards)
    for name in ("x", "made.inputs", "made"):
        run.append_record(name, StreamOn(source if name == "x" else StreamDeclaration(name=name, derived=True)))
    for one in (*KIND.parts(definition, lambda _: source), definition):
        run.append_record(one.inputs[0].stream, OperatorOn(one))
    return run


def run_of(
    document: Mapping[str, Any], events: Iterable[Iterable[Event]], shards: int = 1, **declared: Any
) -> list[tuple[str, Any]]:
    """Type and data of the derived events, and other results, of an aggregate over batches of the stream ``x``."""
    run, found = begun(document, shards, **declared), []
    for some in events:
        run.feed("x", EventBatch.from_events(list(some)))
        found += run.settle()
    found += run.finish()
    rows = [(row.kind, orjson.loads(row.body)) for block in found for row in block]
    rows.sort(key=lambda row: (row[1].get("time", ""), row[0]))
    return [(body["type"], body["data"]) if kind == "derived" else (kind, body) for kind, body in rows]


COUNTED = {"values": {"n": "count()", "s": "sum(v)"}, "window": "10 s", "having": "n >= 2", "clear": True}


@pytest.mark.parametrize("by", [["key"], ["g"], []])
def test_a_retraction_takes_its_event_out(by: list[str]) -> None:
    events = [
        event(1, 1, g="a", v=5),
        event(2, 2, g="a", v=7),
        Event(id="r", type="A.retracted", time_us=3 * SECOND_US, key="k", data={"retracts": "e1"}),
        event(3, 4, g="a", v=1),
        event(4, 30, g="b", v=1),
    ]
    found = run_of({**COUNTED, "by": by}, [events], derived=True)
    assert [(kind, data["n"], data["s"]) for kind, data in found] == [
        ("made", 2, 12),
        ("made.cleared", 1, 7),
        ("made", 2, 8),
        ("made.cleared", 1, 1),
    ]


def retraction(of: str, at_s: int) -> Event:
    return Event(id=f"r{at_s}", type="A.retracted", time_us=at_s * SECOND_US, key="k", data={"retracts": of})


@EVERY_PLACE
def test_a_retraction_takes_its_event_out_of_a_session_of_any_length(by: list[str], shards: int) -> None:
    events = [[event(n, 20 * n, g="a", v=10**n)] for n in range(5)]
    document = {"by": by, "values": COUNTED["values"], "window": {"session": "30 s"}}
    found = run_of(document, [*events, [retraction("e0", 81)], [event(5, 200, g="b", v=0)]], shards, derived=True)
    assert [(data["n"], data["s"]) for _, data in found] == [(4, 11_110), (1, 0)]


def test_retractions_of_unknown_events_are_counted() -> None:
    def counts() -> list[int | None]:
        measures = run.states[0].measures()["x"]
        return [number for name, number in measures.items() if name.startswith(COUNTED_KINDS)]

    run = begun({**COUNTED, "by": ["g"], "where": "v > 0"}, derived=True)
    unknown = [event(2, 2, g="a", v=0), retraction("e2", 3), retraction("e9", 4)]  # where leaves e2 out
    run.feed("x", EventBatch.from_events([event(0, 0, g="a", v=1), event(1, 1, g="a", v=1), *unknown]))
    run.settle()
    assert counts() == [2, 2]
    run.states[0] = ShardState.load(run.states[0].dump())
    run.feed("x", EventBatch.from_events([retraction("e1", 5), retraction("e0", 6), retraction("e0", 7)]))
    run.settle()
    assert counts() == [0, 3]
    kept = [state.measures()["x"]["aggregate-input_unknown_retractions"] for state in run.states[0].split(1, 2)]
    assert sorted(number or 0 for number in kept) == [0, 3]


def test_derived_events_have_the_type_that_the_aggregate_declares() -> None:
    events = [event(1, 1, v=5), event(2, 2, v=7), event(3, 30, v=1)]
    for changes, types in (
        ({"type": "Busy"}, ["Busy", "Busy.cleared"]),
        ({"type": "Busy", "having": "s > 5", "window": {"tumbling": "10 s"}, "clear": False}, ["Busy"]),
        ({}, ["made", "made.cleared"]),
    ):
        assert [kind for kind, _ in run_of({**COUNTED, "by": ["key"], **changes}, [events])] == types


@pytest.mark.parametrize("by", [["key"], ["g"], []])
def test_a_late_event_counts_from_then_on_or_not_at_all(by: list[str]) -> None:
    late = [[event(1, 1, v=1)], [event(2, 20, v=1)], [event(3, 11, v=1)], [event(4, 9, v=1)], [event(5, 40, v=1)]]
    found = run_of({**COUNTED, "by": by, "events": 5}, late, lateness=0, late="process")
    assert [(kind, [one["id"] for one in data["events"]]) for kind, data in found] == [
        ("made", ["e3", "e2"]),
        ("made.cleared", ["e2"]),
    ]


@pytest.mark.parametrize("by", [["key"], ["key", "g"]])
@pytest.mark.parametrize("declared", [{}, {"lateness": 0, "late": "process"}])
def test_events_in_any_order_count_alike_in_one_batch_and_in_many(by: list[str], declared: dict[str, Any]) -> None:
    """Events that ``where`` leaves out advance time, too. (Groups across keys are sorted before they count.)"""
    random = Random(1)
    events = [
        event(number, 2 * number - random.randrange(15), key=random.choice("ab"), v=random.randrange(3), g=number % 2)
        for number in range(60)
    ]
    document = {**COUNTED, "by": by, "where": "v > 0"}
    expected = run_of(document, [[one] for one in events], **declared)
    assert run_of(document, [events], **declared) == expected
    assert len(expected) > 10


@EVERY_PLACE
def test_late_events_within_the_bound_count_at_their_time(by: list[str], shards: int) -> None:
    mixed = [[event(1, 1, v=1), event(2, 12, v=1), event(3, 9, v=1), event(4, 40, v=1)]]
    found = run_of({**COUNTED, "by": by, "events": 5}, mixed, shards, lateness=5)
    assert [[one["id"] for one in data["events"]] for kind, data in found if kind == "made"] == [
        ["e1", "e3"],
        ["e3", "e2"],
    ]


@pytest.mark.parametrize("derived", [False, True])
@EVERY_PLACE
def test_a_derived_event_has_the_newest_events_of_its_group(by: list[str], shards: int, derived: bool) -> None:
    """Each as it was posted, whatever the key; without events that have left, or were retracted."""
    posted = [event(n, n, key=f"k{n % 2 if by != ['key'] else 0}", g="a", v=n) for n in range(1, 6)]
    away = Event(id="r", type="A.retracted", time_us=6 * SECOND_US, key=posted[3].key, data={"retracts": "e4"})
    document = {"by": by, "values": {"n": "count()"}, "window": "20 s", "having": "n >= 3", "clear": True, "events": 3}
    batches = [
        [*posted, *([away] if derived else []), event(8, 22, key=posted[0].key, g="a", v=8), event(9, 90, g="b")]
    ]
    found = [(kind, data["n"], data["events"]) for kind, data in run_of(document, batches, shards, derived=derived)]
    assert [(kind, n, [one["id"] for one in events]) for kind, n, events in found] == [
        ("made", 3, ["e1", "e2", "e3"]),
        *([("made.cleared", 2, ["e3", "e5"]), ("made", 3, ["e3", "e5", "e8"])] if derived else []),
        ("made.cleared", 2, ["e5", "e8"]),
    ]
    first = {"id": "e1", "time": "1970-01-01T00:00:01.000000Z", "type": "A", "data": dict(posted[0].data)}
    assert found[0][2][0] == first


@pytest.mark.parametrize("shards", [1, 4])
def test_a_window_holds_a_whole_transaction(shards: int) -> None:
    events = [
        [event(1, 1, v=1), event(2, 2, "End", v=2), event(3, 3, v=4)],
        [event(4, 4, key="l", v=9), event(5, 60, key="m", v=0)],
    ]
    document = {"by": ["key"], "values": {"n": "count()", "s": "sum(v)"}, "window": "transaction"}
    found = run_of(document, events, shards, end_events=("End",), idle_timeout=30)
    assert sorted((data["key"], data["n"], data["s"]) for _, data in found) == [
        ("k", 1, 4),
        ("k", 2, 3),
        ("l", 1, 9),
        ("m", 1, 0),
    ]


def test_a_transaction_that_is_idle_ends_between_two_events_of_a_batch() -> None:
    events = [event(1, 0), event(2, 100), event(3, 101)]
    document = {"by": ["key"], "values": {"n": "count()"}, "window": "transaction"}
    for batches in ([events], [[one] for one in events]):
        assert [data["n"] for _, data in run_of(document, batches, idle_timeout=30)] == [1, 2]


@pytest.mark.parametrize("lateness", [None, 5])
def test_a_transaction_ends_at_its_idle_timeout_however_the_log_is_cut(lateness: int | None) -> None:
    """Each end is three seconds after the last event, although the watermark passes it later."""
    events = [event(1, 1, key="a"), event(2, 8, key="b"), event(3, 11, key="b"), event(4, 30, key="b")]
    document = {"by": ["key"], "values": {"n": "count()"}, "window": "transaction"}
    for batches in ([events], [[one] for one in events]):
        found = run_of(document, batches, idle_timeout=3, lateness=lateness)
        assert [(data["key"], data["to"][17:19]) for _, data in found] == [
            ("a", "04"),
            ("b", "11"),
            ("b", "14"),
            ("b", "30"),
        ]


def test_more_events_than_it_may_hold_suspend_it() -> None:
    document = {**COUNTED, "by": ["key"], "memory": {"rows": 3}}
    found = run_of(document, [[event(n, n, v=1) for n in range(8)]])
    assert [kind for kind, _ in found] == ["aggregate-suspension", "made"]
    assert "hold more than 3 events in one shard. Shorten the window, or" in found[0][1]["reason"]


def test_more_earlier_values_than_it_may_hold_suspend_it() -> None:
    """The window has one event at most, and each event changes the value."""
    changes = {"window": "1 s", "having": "n > before(n, 7 d)", "memory": {"rows": 9}}
    found = run_of({**COUNTED, "by": ["key"], **changes}, [[event(n, 2 * n, v=1)] for n in range(8)])
    assert [kind for kind, _ in found] == ["aggregate-suspension"]
    assert (
        "hold more than 9 events and earlier values in one shard. Shorten the window or the time in before(...)"
        in (found[0][1]["reason"])
    )


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"where": "v >"}, "'where'"),
        ({"values": {"n": "sum(count(v))"}}, "'values'"),
        ({"having": "m > 1"}, "m is neither"),
        ({"having": "n >"}, "'having'"),
        ({"by": ["g"], "window": "transaction"}, "transaction needs the key"),
        ({"since": 1}, "since"),
    ],
)
def test_what_cannot_run_is_refused(changes: dict[str, Any], part: str) -> None:
    document = {"name": "made", "of": "x", "by": ["key"], "values": {"n": "count()"}, "window": "1 h", **changes}
    with pytest.raises(OperatorRefused) as refused:
        KIND.read(document, lambda _: StreamDeclaration(name="x"))
    assert part in refused.value.message


@EVERY_PLACE
@pytest.mark.parametrize("window", [{"tumbling": "1 w"}, {"hopping": "1 h", "every": "20 min"}])
def test_an_event_of_the_first_time_spoils_no_later_event(by: list[str], shards: int, window: Any) -> None:
    document = {"by": by, "values": COUNTED["values"], "window": window}
    usual = [[event(n, 10**6 * n, g="a", v=1)] for n in range(1, 5)]
    first = Event(id="e0", type="A", time_us=EARLIEST_US, key="k", data={"g": "b", "v": 1})
    found, expected = run_of(document, [[first], *usual], shards), run_of(document, usual, shards)
    assert {kind for kind, _ in found} == {"made"}
    assert [data for _, data in found if data["from"] > "1969"] == [data for _, data in expected]
    assert [data["n"] for _, data in found if data["from"] < "1969"] == [1] * (len(found) - len(expected))
    assert len(found) > len(expected)


@pytest.mark.parametrize("text", ["see (n)", "see all(n)", "before(n, 7 d)", "row.n", "it's all(n)"])
def test_a_text_in_the_condition_that_looks_like_a_call_is_compared_as_it_is(text: str) -> None:
    quoted = text.replace("'", "''")
    document = {"by": ["g"], "values": {"n": "count()"}, "window": "1 h", "having": f"g = '{quoted}'"}
    found = run_of(document, [[event(1, 1, g=text), event(2, 2, g="other")]], key="data.g")
    assert found == [("made", {"g": text, "n": 1})]


@pytest.mark.parametrize(
    ("key", "by", "is_moved"), [("data.g", ["g"], False), ("data.g", ["h"], True), ("key", ["h", "key"], False)]
)
def test_groups_of_the_key_stay_in_their_shard(key: str, by: list[str], is_moved: bool) -> None:
    document = {"name": "made", "of": "x", "by": by, "values": {"n": "count()"}, "window": "1 h"}
    source = StreamDeclaration(name="x", key=key)
    definition = KIND.read(document, lambda _: source)
    assert bool(KIND.parts(definition, lambda _: source)) == is_moved
    assert any("re-keyed" in one for one in KIND.explain(definition)) == is_moved
