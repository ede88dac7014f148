"""Joins with ``wait: auto``: keys are finished by what is measured, and nothing is held for longer than that."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shards import WAIT, InlineShards, RowBlock, ShardState
from shards.blob import unpack
from streams import (
    ClosedKeys,
    Event,
    EventBatch,
    KeyRange,
    KeysClosed,
    Punctuation,
    StreamDeclaration,
    StreamOn,
    Tick,
    format_time,
)
from tests.shards.test_joins import found, started

STREAMS = ("orders", "payments")
STEP = 256
WAITING: dict[str, Any] = {
    "name": "pairs",
    "inputs": [{"stream": "orders", "as": "o"}, {"stream": "payments", "as": "p"}],
    "wait": "auto",
    "return": {"o": "o.n", "p": "p.n"},
}
ALL_KEPT = {**WAITING, "wait": "none", "memory": {"rows": 10**9, "spill": True}}
REKEYED = [
    {"stream": "orders", "as": "o"},
    {"stream": "parcels", "as": "p", "key": "data.number"},
]

Rows = Sequence[tuple[int, int]]


def scrambled(seed: int, numbers: Iterable[int], bound: float, first_us: int = 0) -> Rows:
    """Times and keys: the keys rise, and each comes up to ``bound`` places too late; one every microsecond."""
    chance = random.Random(seed)
    order = sorted(numbers, key=lambda key: key + chance.uniform(0, bound))
    return [(first_us + place, key) for place, key in enumerate(order)]


def batch_of(stream: str, rows: Rows) -> EventBatch:
    return EventBatch.from_events(
        [
            Event(
                id=f"{stream}{key}at{time_us}",
                type="T",
                time_us=time_us,
                key=f"x{key % 7}" if stream == "parcels" else str(key),
                data={"n": key, "number": key},
            )
            for time_us, key in rows
        ]
    )


def pushed(
    run: InlineShards,
    made: Mapping[str, Rows],
    *,
    step: int = STEP,
    each: Callable[[InlineShards], None] | None = None,
) -> list[RowBlock]:
    """The row blocks of streams whose events arrive ``step`` at a time, with a decision after each step."""
    rows: list[RowBlock] = []
    for at in range(0, max(map(len, made.values())), step):
        for stream, some in made.items():
            run.feed(stream, batch_of(stream, some[at : at + step]))
        rows += run.settle()
        newest_us = max(some[min(at + step, len(some)) - 1][0] for some in made.values())
        for stream in made:
            run.append_record(stream, Tick(time_us=newest_us, cause="events"))
        rows += run.decide()
        if each is not None:
            each(run)
    return rows


def measured(run: InlineShards, name: str) -> int:
    return sum(state.measures()["pairs.inputs"][f"join_{name}"] or 0 for state in run.states)


def bytes_of_joins(run: InlineShards) -> int:
    """Bytes that are saved of the join and its inputs."""
    sections = [unpack(state.dump())[2] for state in run.states]
    return sum(len(body) for some in sections for name, body in some.items() if "join" in name)


def letters(rows: Sequence[RowBlock]) -> list[dict[str, Any]]:
    return [orjson.loads(row.body) for block in rows for row in block if row.kind == "dead-letter"]


def reloaded(run: InlineShards) -> None:
    run.states = [ShardState.load(state.dump()) for state in run.states]


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize("inputs", [WAITING["inputs"], REKEYED], ids=["by their keys", "by another key"])
def test_the_results_are_those_of_a_join_that_keeps_everything_and_little_is_kept(
    shards: int, inputs: list[dict[str, Any]]
) -> None:
    names = [one["stream"] for one in inputs]
    made = {names[0]: scrambled(1, range(4_096), 60), names[1]: scrambled(2, range(4_096), 100, first_us=37)}
    held: list[int] = []
    run = started(shards, {**WAITING, "inputs": inputs})
    rows = pushed(run, made, each=lambda run: held.append(measured(run, "stored")))
    everything = started(1, {**ALL_KEPT, "inputs": inputs})
    assert found(rows + run.finish(), "pairs") == found(pushed(everything, made) + everything.finish(), "pairs")
    assert measured(run, "violations") == 0
    assert run.decided["pairs.inputs"] > 8
    assert max(held) < 3_300, "what comes before the first decision, and in a step"
    assert max(held[8:]) < 2_000


def test_what_is_saved_of_streams_without_end_stays_as_it_is() -> None:
    run, sizes = started(2, WAITING), []
    made = {stream: scrambled(number, range(16_000), 50) for number, stream in enumerate(STREAMS)}
    pushed(run, made, step=800, each=lambda run: sizes.append(bytes_of_joins(run)))
    assert max(sizes[10:]) < 1.2 * max(sizes[4:10])
    assert measured(run, "remembered") < 2_500
    assert measured(run, "stored") < 5_000


def test_a_state_that_is_saved_and_loaded_goes_on_in_the_same_way() -> None:
    made = {stream: scrambled(number, range(2_560), 60) for number, stream in enumerate(STREAMS)}
    run, other = started(2, WAITING), started(2, WAITING)
    rows, again = pushed(run, made), pushed(other, made, each=reloaded)
    assert [orjson.loads(row.body) for block in rows for row in block] == [
        orjson.loads(row.body) for block in again for row in block
    ]
    assert run.decided == other.decided
    assert run.decided["pairs.inputs"] > 3


def test_a_slow_input_holds_the_rows_of_the_other_and_its_end_finishes_everything() -> None:
    run = started(1, WAITING)
    pushed(run, {"orders": scrambled(1, range(3_000), 20), "payments": [(0, 0)]})
    assert measured(run, "stored") >= 2_990
    rows = run.finish()
    assert measured(run, "stored") == measured(run, "keys") == 0
    assert len(found(rows, "pairs")) <= 1


LATE: dict[str, Rows] = {"orders": [*scrambled(1, range(4_000), 20), (4_000, 17), (4_001, 3_999_999)]}
LATE |= {"payments": scrambled(2, range(4_000), 20)}


def test_an_event_of_a_finished_key_is_late() -> None:
    run = started(1, WAITING)
    rows = pushed(run, LATE)
    (letter,) = letters(rows + run.finish())
    assert (letter["code"], letter["stream"], letter["key"], letter["pattern"]) == (
        "key-finished",
        "orders",
        "17",
        "pairs",
    )
    assert "the keys have begun again" in letter["reason"]
    assert measured(run, "violations") == 1


def test_a_join_with_late_fail_is_suspended_by_it() -> None:
    run = started(1, {**WAITING, "late": "fail"})
    rows = pushed(run, LATE)
    (suspension,) = [orjson.loads(row.body) for block in rows for row in block if row.kind == "join-suspension"]
    assert (suspension["key"], suspension["source"]) == ("17", "orders")
    assert measured(run, "stored") == 0


@pytest.mark.parametrize("inputs", [WAITING["inputs"], REKEYED], ids=["by their keys", "by another key"])
def test_a_key_that_is_no_whole_number_is_a_dead_letter_and_is_never_held(inputs: list[dict[str, Any]]) -> None:
    run = started(2, {**WAITING, "inputs": inputs})
    stream = inputs[1]["stream"]
    keys = ["7", "007", "a7", "7.0", "-12", "99999999999999999999"]
    events = [
        Event(id=f"e{key}", type="T", time_us=place, key=key, data={"number": key, "n": 1})
        for place, key in enumerate(keys)
    ]
    run.feed(stream, EventBatch.from_events(events))
    run.feed("orders", EventBatch.from_events([Event(id="o", type="T", time_us=9, key="7", data={"n": 7})]))
    rows = run.settle() + run.finish()
    said = sorted((letter["code"], letter["key"], letter["event_id"]) for letter in letters(rows))
    wrong = ["007", "7.0", "99999999999999999999", "a7"]
    assert said == [("key-not-whole", key, f"e{key}") for key in wrong]
    assert {letter["stream"] for letter in letters(rows)} == {stream}
    assert sum(state.measures()[stream]["join-input_refused"] or 0 for state in run.states) == 4
    assert measured(run, "events") == 3
    assert len(found(rows, "pairs")) == 1


def test_keys_that_begin_again_are_joined_again_after_a_while() -> None:
    run, rows = started(2, WAITING), []
    for round_ in range(2):
        made = {stream: scrambled(n, range(4_000), 30, first_us=4_000 * round_) for n, stream in enumerate(STREAMS)}
        rows += pushed(run, made)
    late = letters(rows)
    assert {letter["code"] for letter in late} == {"key-finished"}
    joined = [data for time, data in found(rows + run.finish(), "pairs") if time >= format_time(4_000)]
    assert len(joined) > 2_500
    assert len(joined) == len(set(joined))
    assert {letter["event_id"].partition("at")[0] for letter in late}.isdisjoint(
        f"orders{orjson.loads(data)['o']}" for data in joined
    )


def told(run: InlineShards, *closed: tuple[str, int | None, int]) -> list[RowBlock]:
    some = (ClosedKeys(input=alias, to=to, time_us=time_us) for alias, to, time_us in closed)
    run.append_record("pairs.inputs", KeysClosed(tuple(some)))
    return run.settle()


def fed(run: InlineShards, stream: str, *rows: tuple[int, int]) -> list[RowBlock]:
    run.feed(stream, batch_of(stream, rows))
    return run.settle()


def test_a_record_finishes_keys_of_one_input_at_its_time() -> None:
    run = started(1, {**WAITING, "outer": ["p"], "return": {"o": "o.n", "why": "decided_by(p)"}})
    fed(run, "orders", (1, 5), (2, 6), (3, 7))
    fed(run, "payments", (10, 6))
    rows = told(run, ("p", 6, 4), ("q", 100, 4))
    rows += fed(run, "orders", (20, 4), (30, 30))
    rows += fed(run, "payments", (20, 5), (30, 31))
    said = [(time[-4:-1], data) for time, data in found(rows, "pairs")]
    absent = [("004", 5), ("004", 6), ("020", 4)]
    assert said == [(when, orjson.dumps({"o": key, "why": "finished"})) for when, key in absent]
    assert [letter["key"] for letter in letters(rows)] == ["6", "5"]


def test_a_range_that_a_sender_finishes_counts_as_well() -> None:
    inputs = [WAITING["inputs"][0], {**WAITING["inputs"][1], "closed_by": "punctuation"}]
    run = started(1, {**WAITING, "inputs": inputs})
    fed(run, "orders", (1, 5), (2, 6))
    fed(run, "payments", (2, 100))
    run.append_record("payments", Punctuation(range=KeyRange(high=5), time_us=2))
    told(run, ("o", 6, 2))
    fed(run, "orders", (3, 200))
    fed(run, "payments", (3, 201))
    assert measured(run, "stored") == 2, "6 and 100"


IDLE_US = 20
IDLE: dict[str, Any] = {
    **WAITING,
    "inputs": [WAITING["inputs"][0], {**WAITING["inputs"][1], "type": "Pay", "closed_by": "end"}],
    "outer": ["p"],
    "return": {"o": "id(o)", "p": "id(p)", "why": "decided_by(p)"},
}


def idling(shards: int, document: dict[str, Any]) -> InlineShards:
    """Shards with a join of streams; the traces of payments end when they are idle."""
    run: InlineShards = started(shards, document)
    run.append_record("payments", StreamOn(StreamDeclaration(name="payments", idle_timeout=IDLE_US / 1e6)))
    run.settle()
    return run


def put(run: InlineShards, stream: str, time_us: int, key: str, kind: str = "T") -> None:
    event = Event(id=f"{stream[0]}{key}at{time_us}", type=kind, time_us=time_us, key=key, data={})
    run.feed(stream, EventBatch.from_events([event]))


@pytest.mark.parametrize("wait", ["none", "auto"])
def test_an_idle_trace_finishes_its_key(wait: str) -> None:
    run = idling(1, {**IDLE, "wait": wait, "window": "1 h"})
    put(run, "orders", 10, "1")
    put(run, "payments", 10, "1", "Note")
    put(run, "orders", 200, "3")
    put(run, "payments", 200, "3", "Pay")
    rows = run.settle() + run.pause()
    absent = {"o": "o1at10", "p": None, "why": "finished"}
    assert (format_time(30), orjson.dumps(absent)) in found(rows, "pairs")
    assert (measured(run, "purged"), measured(run, "stored")) == (1, 2)


def test_idle_traces_of_keys_that_the_join_does_not_hold_are_not_remembered() -> None:
    run = idling(1, IDLE)
    for number in range(40):
        put(run, "payments", 10 + number, f"a{number}", "Note")
        put(run, "payments", 10 + number, str(number), "Pay" if number < 5 else "Note")
    put(run, "orders", 200, "99")
    put(run, "payments", 200, "99")
    rows = run.settle() + run.pause()
    assert letters(rows) == []
    assert (measured(run, "keys"), measured(run, "stored")) == (6, 6)


def test_an_upstream_join_that_ends_a_key_finishes_it() -> None:
    inputs = [{"stream": "orders", "as": "o", "closed_by": "unique"}, {**WAITING["inputs"][1], "closed_by": "unique"}]
    upstream = {"name": "paid", "inputs": inputs, "return": {"o": "id(o)"}}
    inputs = [{"stream": "parcels", "as": "q"}, {"stream": "paid", "as": "r", "closed_by": "end"}]
    document = {**WAITING, "inputs": inputs, "outer": ["r"], "return": {"q": "id(q)", "why": "decided_by(r)"}}
    run = started(1, upstream, document)
    put(run, "orders", 10, "1")
    put(run, "parcels", 11, "1")
    put(run, "payments", 20, "1")
    for stream in ("orders", "payments", "parcels"):
        put(run, stream, 90, "7")
    run.settle()
    run.pause()
    assert (measured(run, "purged"), measured(run, "stored")) == (2, 2), "parcels are dropped"


def test_of_a_join_without_wait_nothing_is_observed() -> None:
    run = started(1, ALL_KEPT)
    fed(run, "orders", (1, 5))
    assert run.states[0].observations() == []
    run = started(1, WAITING)
    fed(run, "orders", (1, 5))
    (seen,) = run.states[0].observations()
    assert (seen.stream, seen.decider, seen.summary["input"]) == ("pairs.inputs", WAIT, "o")
    assert run.states[0].observations() == []


def suspensions(rows: Sequence[RowBlock]) -> list[dict[str, Any]]:
    return [orjson.loads(row.body) for block in rows for row in block if row.kind == "join-suspension"]


def test_a_join_that_would_hold_more_than_it_may_is_suspended_once_that_is_known() -> None:
    made = {stream: scrambled(number, range(3_000), 1_400) for number, stream in enumerate(STREAMS)}
    run, held = started(2, {**WAITING, "memory": {"rows": 1_400}}), []
    rows = pushed(run, made, each=lambda run: held.append(measured(run, "stored")))
    found_ = suspensions(rows)
    assert {one["id"] for one in found_} == {found_[0]["id"]}
    assert [one["shard"] for one in found_] == [0, 1]
    reason = found_[0]["reason"]
    assert "it would hold too many events, and its memory is 1,400 rows; keys of o come up to " in reason
    assert "in each of 2 shards" in reason
    assert "With 'spill: true' in its memory" in reason
    assert 0 < max(held) < 3_000 + 2 * STEP
    assert held[-1] == 0
    reloaded(run)
    assert suspensions(pushed(run, {"orders": [(9_000, 9_000)]})) == []


def test_a_join_that_holds_more_than_it_may_is_suspended_by_that() -> None:
    made = {"orders": scrambled(1, range(4_000), 20), "payments": scrambled(2, range(300), 20)}
    run = started(1, {**WAITING, "memory": {"rows": 2_000}})
    (suspension,) = suspensions(pushed(run, made))
    assert "events in a shard, and its memory is 2,000 rows" in suspension["reason"]
    assert "too little is known" in suspension["reason"]


@pytest.mark.parametrize("memory", [{"rows": 2_600}, {"rows": 300, "spill": True}])
def test_a_join_whose_memory_is_enough_or_that_has_a_disk_goes_on(memory: dict[str, Any]) -> None:
    made = {stream: scrambled(number, range(3_000), 60) for number, stream in enumerate(STREAMS)}
    run = started(1, {**WAITING, "memory": memory})
    rows = pushed(run, made)
    assert suspensions(rows) == []
    assert len(found(rows + run.finish(), "pairs")) == 3_000


# --- random records -------------------------------------------------------------------------------------------------

steps = st.one_of(
    st.tuples(st.sampled_from(["orders", "payments"]), st.integers(0, 2), st.integers(-3, 12)),
    st.tuples(st.sampled_from(["orders", "payments"]), st.integers(0, 2), st.integers(-3, 12)),
    st.tuples(st.sampled_from(["o", "p"]), st.integers(0, 2), st.one_of(st.none(), st.integers(-3, 12))),
)


def read_naively(made: Sequence[tuple[str, int, int | None]]) -> tuple[list[tuple[int, int, int, int]], list[int]]:
    """The pairs that records let be found, and the places of late events, in whatever order.

    A pair has how often keys have begun again, the key, and the places of its events.
    """
    rows, time_us = [], 0
    for place, (what, pause, number) in enumerate(made):
        time_us += pause
        is_record = what in ("o", "p")
        rows.append((time_us, what in ("p", "payments"), is_record, place, number))
    closed: dict[bool, int] = {}
    kept: list[tuple[bool, int, int]] = []
    pairs: list[tuple[int, int, int, int]] = []
    late, life = [], 0
    for _, is_second, is_record, place, number in sorted(rows, key=lambda row: row[:4]):
        if not is_record:
            key = number or 0
            if key <= closed.get(is_second, key - 1):
                late.append(place)
                continue
            others = [other for side, known, other in kept if side is not is_second and known == key]
            pairs += [(life, key, *((other, place) if is_second else (place, other))) for other in others]
            kept.append((is_second, key, place))
        elif number is not None:
            closed[is_second] = max(number, closed.get(is_second, number))
        elif is_second in closed:
            closed, kept, life = {}, [], life + 1
    return pairs, late


TOTALS = {"emit": "on_close", "return": {"o": "count(o)", "p": "count(p)", "on": "sum(o.n)", "pn": "sum(p.n)"}}


def totals_of(pairs: Sequence[tuple[int, int, int, int]]) -> list[tuple[int, ...]]:
    """The number of orders and payments in pairs, and the sums of their places, for each key each time it began."""
    members: dict[tuple[int, int], tuple[set[int], set[int]]] = {}
    for life, key, order, payment in pairs:
        orders, payments = members.setdefault((life, key), (set(), set()))
        orders.add(order)
        payments.add(payment)
    return [(len(one), len(other), sum(one), sum(other)) for one, other in members.values()]


@settings(max_examples=100, deadline=None)
@example([("orders", 0, 0), ("p", 0, 0), ("p", 0, None), ("payments", 1, 0)], 1, set(), None, False)
@given(
    st.lists(steps, max_size=40),
    st.sampled_from([1, 3]),
    st.sets(st.integers(0, 40)),
    st.sampled_from([None, 1, 4]),
    st.booleans(),
)
def test_records_mean_what_they_say_for_any_number_of_shards_and_any_cut(
    made: list[tuple[str, int, int | None]], shards: int, cuts: set[int], memory: int | None, sums: bool
) -> None:
    document = {**WAITING, **TOTALS} if sums else WAITING
    if memory is not None:
        document = {**document, "memory": {"rows": memory, "spill": True}}
    run, rows, time_us = started(shards, document), [], 0
    for place, (what, pause, number) in enumerate(made):
        time_us += pause
        if what in STREAMS:
            event = Event(id=f"e{place}", type="T", time_us=time_us, key=str(number), data={"n": place})
            run.feed(what, EventBatch.from_events([event]))
        else:
            closed = ClosedKeys(input=what, to=number, time_us=time_us)
            run.append_record("pairs.inputs", KeysClosed((closed,)))
        if place in cuts:
            rows += run.settle()
            reloaded(run)
    rows += run.finish()
    pairs, late = read_naively(made)
    expected = totals_of(pairs) if sums else [pair[2:] for pair in pairs]
    assert sorted(tuple(orjson.loads(data).values()) for _, data in found(rows, "pairs")) == sorted(expected)
    assert sorted(letter["event_id"] for letter in letters(rows)) == sorted(f"e{place}" for place in late)
    assert measured(run, "stored") == 0


idle_steps = st.tuples(
    st.sampled_from(STREAMS), st.integers(0, 15), st.sampled_from(["1", "2", "3", "a"]), st.sampled_from(["Pay", "T"])
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(idle_steps, max_size=40),
    st.sampled_from([{}, {"emit": "on_close", "return": {"o": "count(o)", "p": "count(p)"}}]),
    st.sampled_from([{}, {"window": "25 us"}, {"memory": {"rows": 1, "spill": True}}]),
    st.sets(st.integers(0, 40)),
)
def test_idle_traces_finish_the_same_keys_for_any_cut(
    made: list[tuple[str, int, str, str]], emit: dict[str, Any], bound: dict[str, Any], cuts: set[int]
) -> None:
    whole, cut = idling(1, {**IDLE, **emit, **bound}), idling(3, {**IDLE, **emit, **bound})
    rows, time_us = [], 0
    for place, (stream, pause, key, kind) in enumerate(made):
        time_us += pause
        put(whole, stream, time_us, key, kind)
        put(cut, stream, time_us, key, kind)
        if place in cuts:
            rows += cut.settle()
            reloaded(cut)
    assert found(whole.settle() + whole.finish(), "pairs") == found(rows + cut.finish(), "pairs")
