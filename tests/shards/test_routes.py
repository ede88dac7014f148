"""Several correlation keys, pauses and migrations, as a shard sees them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards.state import ShardState
from streams import (
    ConstraintsOn,
    Event,
    PatternOff,
    PatternOn,
    PatternPause,
    Punctuation,
    StreamDeclaration,
    StreamOn,
    Tick,
    TraceEnd,
    key_hash,
    shard_of,
)
from tests.builders.shards import bodies, event, log_of, run_inline

KEYS = {"customer": "data.customer_id", "place": "data.place"}
STREAM = StreamOn(StreamDeclaration(name="orders", key="data.order", keys=KEYS, end_events=("End",)))
ORDER = PatternOn(name="order", version=1, text="PATTERN order EVENT SEQ(A a, B b)")
CUSTOMER = PatternOn(
    name="customer", version=1, text="PATTERN customer EVENT SEQ(A a, B b) WHERE [customer_id]", route="customer"
)
FINER = PatternOn(
    name="finer", version=1, text="PATTERN finer EVENT SEQ(A a, B b) WHERE [customer, w]", route="customer"
)
EXCLUSIVE = ConstraintsOn(name="orders", version=1, document={"exclusive": [["X", "B"]]})


def order_event(number, event_type, order, customer, **data):
    return event(number, event_type, order, order=order, customer_id=customer, **data)


def alerts(rows, pattern=None):
    found = bodies(rows, "alert")
    return [(one["key"], one["bindings"]) for one in found if pattern in (None, one["pattern"])]


EVENTS = [order_event(1, "A", "o1", "c"), order_event(2, "A", "o2", "d"), order_event(3, "B", "o3", "c")]


def test_a_pattern_over_customers_sees_several_orders():
    rows = run_inline(log_of([STREAM, ORDER, CUSTOMER, EVENTS]))
    (alert,) = bodies(rows, "alert")
    assert (alert["pattern"], alert["key"], alert["route"]) == ("customer", "c", "customer")
    assert alert["bindings"] == {"a": ["e1"], "b": ["e3"]}


def test_alerts_of_the_correlation_key_say_nothing_of_routes():
    (alert,) = bodies(run_inline(log_of([STREAM, ORDER, [EVENTS[0], order_event(4, "B", "o1", "x")]])), "alert")
    assert "route" not in alert


def test_a_route_has_finer_traces_too():
    batch = [order_event(n, kind, f"o{n}", "c", w=w) for n, kind, w in [(1, "A", 1), (2, "A", 2), (3, "B", 2)]]
    assert alerts(run_inline(log_of([STREAM, FINER, batch]))) == [("c", {"a": ["e2"], "b": ["e3"]})]


def test_constraints_and_end_events_are_of_the_correlation_key_alone():
    both = [order_event(1, "A", "o1", "c"), order_event(2, "X", "o1", "c"), order_event(3, "End", "o1", "c")]
    rows = run_inline(log_of([STREAM, EXCLUSIVE, ORDER, CUSTOMER, [*both, order_event(4, "B", "o2", "c")]]))
    assert alerts(rows, "customer") == [("c", {"a": ["e1"], "b": ["e4"]})]
    assert [(one["pattern"], one["key"]) for one in bodies(rows, "ending")] == [("order", "o1")]


def test_events_for_a_key_that_no_pattern_uses_are_a_dead_letter():
    log = log_of([STREAM, CUSTOMER, EVENTS])[0]
    (letter,) = bodies(ShardState(0).apply([log[0], log[-1]]), "dead-letter")
    assert (letter["code"], letter["route"]) == ("control-record", "customer")
    assert "no pattern of the stream 'orders' is matched by it" in letter["reason"]


def test_a_route_that_is_not_declared_is_a_dead_letter_and_changes_nothing():
    state = ShardState(0)
    lost = PatternOn(name="lost", version=1, text="PATTERN lost EVENT A a WHERE [region]", route="region")
    rows = state.apply(log_of([STREAM, ORDER, lost])[0])
    (letter,) = bodies(rows, "dead-letter")
    assert "there is no further key 'region'; declared are: customer, place" in letter["reason"]
    assert list(state.measures()) == ["orders"]


def test_a_pattern_that_changes_its_key_stops_where_it_was():
    moved = PatternOn(name="customer", version=2, text="PATTERN customer EVENT SEQ(A a, B b)")
    later = [order_event(5, "A", "o9", "c"), order_event(6, "B", "o9", "c")]
    rows = run_inline(log_of([STREAM, CUSTOMER, EVENTS[:1], moved, EVENTS[1:], later]))
    assert [(one["version"], one["key"]) for one in bodies(rows, "alert")] == [(2, "o9")]


def test_the_last_pattern_of_a_route_takes_it_away():
    state = ShardState(0)
    state.apply(log_of([STREAM, ORDER, CUSTOMER, FINER, EVENTS])[0])
    assert sorted(state.measures()) == ["orders", "orders@customer"]
    rest = log_of([STREAM, ORDER, CUSTOMER, FINER, EVENTS, PatternOff("customer"), PatternPause("finer")])[0]
    state.apply(rest[:-1])
    assert sorted(state.measures()) == ["orders", "orders@customer"]
    state.apply(rest)
    assert sorted(state.measures()) == ["orders"]


def test_a_paused_pattern_sees_nothing_and_goes_on_from_nothing():
    batches = [EVENTS[:1], [order_event(4, "A", "o1", "c")], [order_event(5, "B", "o1", "c")], [EVENTS[2]]]
    rows = run_inline(
        log_of([STREAM, CUSTOMER, batches[0], PatternPause("customer"), batches[1], CUSTOMER, batches[2], batches[3]])
    )
    assert alerts(rows) == []
    again = [order_event(7, "A", "o7", "c"), order_event(8, "B", "o8", "c")]
    rows = run_inline(log_of([STREAM, CUSTOMER, batches[0], PatternPause("customer"), batches[1], CUSTOMER, again]))
    assert [(one["version"], one["bindings"]) for one in bodies(rows, "alert")] == [(1, {"a": ["e7"], "b": ["e8"]})]


def test_a_version_that_migrates_leaves_the_older_one_what_it_has():
    second = PatternOn(name="order", version=2, text="PATTERN order EVENT SEQ(A a, B b) WITHIN 1 h", start="migrate")
    batch = [order_event(2, "A", "o1", "c"), order_event(3, "B", "o1", "c")]
    rows = run_inline(log_of([STREAM, ORDER, EVENTS[:1], second, batch]))
    found = {one["version"]: one["bindings"] for one in bodies(rows, "alert")}
    assert found == {1: {"a": ["e1"], "b": ["e3"]}, 2: {"a": ["e2"], "b": ["e3"]}}
    assert len(rows) == 2


def test_a_punctuation_about_time_is_for_all_routes():
    waiting = [
        PatternOn(name=name, version=1, text=f"PATTERN {name} EVENT SEQ(A a, NOT B) WITHIN 5 s{where}", route=route)
        for name, where, route in [("o", "", ""), ("c", " WHERE [customer]", "customer")]
    ]
    for told in (Punctuation(before_us=60_000_000), Tick(time_us=60_000_000, cause="clock")):
        rows = run_inline(log_of([STREAM, *waiting, EVENTS[:1], told]))
        assert sorted((one["pattern"], one.get("route")) for one in bodies(rows, "alert")) == [
            ("c", "customer"),
            ("o", None),
        ]


@pytest.mark.parametrize("record", [TraceEnd(key="o1"), Punctuation(key="o1")])
def test_the_end_of_a_trace_is_of_the_correlation_key(record):
    waiting = PatternOn(name="w", version=1, text="PATTERN w EVENT SEQ(A a, NOT B)")
    rows = run_inline(log_of([STREAM, waiting, CUSTOMER, EVENTS[:1], record, EVENTS[1:]]))
    assert alerts(rows, "w") == [("o1", {"a": ["e1"]})]
    assert alerts(rows, "customer") == [("c", {"a": ["e1"], "b": ["e3"]})]


ROWS = st.lists(
    st.tuples(st.sampled_from(["A", "B", "X"]), st.integers(0, 3), st.sampled_from(["c", "d", 7, None])), max_size=20
)


def posted(rows):
    return [
        Event(
            id=f"e{number}",
            type=event_type,
            time_us=number * 1_000_000,
            key=f"o{order}",
            data={"order": f"o{order}"} | ({} if customer is None else {"customer_id": customer}),
        )
        for number, (event_type, order, customer) in enumerate(rows)
    ]


def told(rows):
    return sorted((one["pattern"], one["key"], sorted(one["bindings"].items())) for one in bodies(rows, "alert"))


@settings(max_examples=50)
@given(rows=ROWS, shards=st.sampled_from([1, 3, 8]), size=st.integers(1, 7))
def test_two_keys_on_one_stream_are_two_streams(rows, shards, size):
    events = posted(rows)
    batches = [events[start : start + size] for start in range(0, len(events), size)]
    together = run_inline(log_of([STREAM, ORDER, CUSTOMER, *batches], shards=shards))
    by_order = run_inline(log_of([STREAM, ORDER, *batches]))
    by_customer = StreamOn(StreamDeclaration(name="orders", key="data.customer_id"))
    plain = PatternOn(name="customer", version=1, text=CUSTOMER.text)
    keyed = [
        Event(id=one.id, type=one.type, time_us=one.time_us, key=str(one.data["customer_id"]), data=one.data)
        for one in events
        if "customer_id" in one.data
    ]
    apart = run_inline(log_of([by_customer, plain, keyed]))
    assert told(together) == sorted(told(by_order) + told(apart))
    ids = {row.id for row in together if row.kind == "alert"}
    assert ids == {row.id for row in [*by_order, *apart] if row.kind == "alert"}


@given(rows=ROWS)
def test_events_of_a_customer_are_all_in_one_shard(rows):
    parts = log_of([STREAM, CUSTOMER, posted(rows)], shards=5)
    homes = {shard_of(key_hash(str(customer)), 5) for _, _, customer in rows if customer is not None}
    assert {shard for shard, entries in parts.items() if any(entry.route for entry in entries)} == homes


MIGRATING = PatternOn(
    name="order", version=2, text="PATTERN order EVENT SEQ(A a, X x, B b) WITHIN 4 s EMIT TIMEOUTS", start="migrate"
)
CUSTOMER_2 = PatternOn(
    name="customer",
    version=2,
    text="PATTERN customer EVENT SEQ(A a, X x) WITHIN 3 s WHERE [customer]",
    start="migrate",
    route="customer",
)
STEPS = st.lists(
    st.one_of(
        ROWS, st.sampled_from([MIGRATING, CUSTOMER_2, CUSTOMER, ORDER, PatternPause("customer"), PatternOff("order")])
    ),
    max_size=8,
)


@settings(max_examples=60)
@given(steps=STEPS, data=st.data())
def test_calls_and_saves_in_between_change_nothing(steps, data):
    number = iter(range(10_000))
    log = log_of(
        [
            STREAM,
            ORDER,
            CUSTOMER,
            *(
                [
                    Event(
                        id=f"e{(n := next(number))}",
                        type=kind,
                        time_us=n * 500_000,
                        key=f"o{order}",
                        data={"order": f"o{order}", "customer_id": customer},
                    )
                    for kind, order, customer in step
                ]
                if isinstance(step, list)
                else step
                for step in steps
            ),
        ]
    )[0]
    whole = ShardState(0).apply(log)
    state, rows = ShardState(0), []
    while log:
        size = data.draw(st.integers(1, len(log)))
        rows += state.apply(log[:size])
        log = log[size:]
        if data.draw(st.booleans()):
            state = ShardState.load(state.dump())
    assert [(row.kind, row.id, row.body) for row in rows] == [(row.kind, row.id, row.body) for row in whole]
