"""Transactions, read from the log."""

import orjson
import pytest

from service import AlertSink
from streams import Tick, format_time, key_hash
from tests.builders.service import sink_row, stats_row

pytestmark = pytest.mark.redis


@pytest.fixture
def send(orders):
    """Sends events of a transaction, one second apart."""
    second = iter(range(1, 1_000))

    def sent(types, key="k", stream="orders"):
        events = [
            {"id": f"e{number}", "type": name, "time": number * 1_000_000, "data": {"id": key}}
            for name, number in zip(types, second, strict=False)
        ]
        answer = orders.post(f"/v1/events?stream={stream}", json=events)
        assert answer.json()["rejected"] == []

    return sent


@pytest.fixture
def patterns(orders):
    """Registers patterns on ``orders``."""

    def register(**texts):
        for name, text in texts.items():
            answer = orders.post("/v1/patterns", json={"stream": "orders", "text": f"PATTERN {name} EVENT {text}"})
            assert answer.status_code == 201

    return register


def look(http, key="k"):
    answer = http.get(f"/v1/traces/orders/{key}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def states(found):
    return {pattern["name"]: pattern["state"] for pattern in found["patterns"]}


def test_a_transaction_is_told(orders, send, patterns):
    orders.post("/v1/constraints", json={"stream": "orders", "constraints": ["exclusive(B, C)", "prior(A, D)"]})
    patterns(ab="SEQ(A a, B b)", ad="SEQ(A a, D d)", ax="SEQ(A a)", yd="SEQ(Y y, D d)")
    send("AXC")
    send("Q", key="other")
    found = look(orders)
    assert [event["id"] for event in found["newest_events"]] == ["e1", "e2", "e3"]
    assert (found["is_complete"], found["is_open"], found["constraints_version"], found["total_events"]) == (
        True,
        True,
        1,
        3,
    )
    assert len(found["positions"]) == 1
    assert states(found) == {"ab": "ended", "ad": "alive", "ax": "waiting", "yd": "waiting"}
    told = {pattern["name"]: pattern for pattern in found["patterns"]}
    assert (told["ab"]["ending"]["event"], told["ab"]["ending"]["form"]) == ("e3", "p2")
    assert "exclusive(B, C)" in told["ab"]["ending"]["reason"]
    assert (told["ax"]["matched"], told["ax"]["matches"]) == (1, [{"a": ["e1"]}])
    may = {following["event_type"]: following for following in found["following"]}
    assert set(may) == {"A", "B", "C", "D", "Z"}
    assert (may["B"]["is_possible"], may["D"]["is_possible"], set(may["D"]["ends"])) == (False, True, {"ax"})
    assert "exclusive(B, C)" in may["B"]["breaks"]
    assert set(may["Z"]["ends"]) == {"ad", "ax", "yd"}


def test_a_transaction_that_broke_its_constraints_says_which(orders, send):
    orders.post("/v1/constraints", json={"stream": "orders", "constraints": ["exclusive(B, C)"]})
    send("BC")
    found = look(orders)
    assert (found["deviation"]["event"], found["deviation"]["constraints"]) == ("e2", ["exclusive(B, C)"])
    assert found["following"] == []


def test_the_last_transaction_of_a_key_counts(orders, send, patterns):
    patterns(ab="SEQ(A a, B b)")
    send("AZ")
    found = look(orders)
    assert (found["is_open"], states(found), found["following"]) == (False, {"ab": "closed"}, [])
    send("A")
    found = look(orders)
    assert (found["is_open"], states(found), found["earlier_events"]) == (True, {"ab": "alive"}, 2)
    assert orders.post("/v1/traces/orders/k/end").status_code == 202
    assert look(orders)["is_open"] is False
    send("B")
    assert [event["type"] for event in look(orders)["newest_events"]] == ["B"]


def test_a_pattern_sees_what_comes_after_it(orders, send, patterns):
    orders.post("/v1/constraints", json={"stream": "orders", "constraints": ["exclusive(A, C)"]})
    send("A")
    patterns(ab="SEQ(A a, B b)", bc="SEQ(B b, D d)")
    send("B")
    found = look(orders)
    assert states(found) == {"ab": "waiting", "bc": "alive"}
    assert {one["event_type"]: one["is_possible"] for one in found["following"]} == {"A": True, "C": False, "Z": True}
    orders.post("/v1/patterns/bc/pause")
    assert states(look(orders)) == {"ab": "waiting", "bc": "paused"}


def matched(found):
    return {pattern["name"]: (pattern["state"], pattern["matched"]) for pattern in found["patterns"]}


def change(http, name, text, **start):
    document = {"stream": "orders", "text": f"PATTERN {name} EVENT {text}", **start}
    assert http.put(f"/v1/patterns/{name}", json=document).status_code == 200


def test_a_pattern_has_no_match_in_a_transaction_that_was_over_before(orders, send, patterns):
    patterns(old="SEQ(A a, B b)")
    send("ABZ")
    patterns(new="SEQ(A a, B b)")
    assert matched(look(orders)) == {"new": ("registered_later", 0), "old": ("closed", 1)}
    send("AB")
    assert matched(look(orders)) == {"new": ("alive", 1), "old": ("alive", 1)}


@pytest.mark.parametrize("start", [{}, {"start": "migrate"}])
def test_a_version_has_no_match_in_a_transaction_that_was_over_before(orders, send, patterns, start):
    patterns(p="SEQ(A a, B b)")
    send("ABZ")
    change(orders, "p", "SEQ(A a, B b, Z z)", **start)
    assert matched(look(orders)) == {"p": ("registered_later", 0)}


def test_the_partial_matches_of_an_earlier_version_become_its_matches(orders, send, patterns):
    patterns(p="SEQ(A a, B b, C c [c.v > 200])")
    send("AB")
    change(orders, "p", "SEQ(A a, B b, C c)", start="migrate")
    (pattern,) = look(orders)["patterns"]
    assert (pattern["state"], pattern["seen_events"], pattern["earlier_matched"]) == ("alive", 0, 0)
    send("CZ")
    (pattern,) = look(orders)["patterns"]
    assert (pattern["state"], pattern["matched"], pattern["matches"]) == ("closed", 0, [])
    assert (pattern["seen_events"], pattern["earlier_matched"]) == (2, 0)
    send("ABCZ")
    (pattern,) = look(orders)["patterns"]
    assert (pattern["matched"], pattern["seen_events"], pattern["earlier_matched"]) == (1, 4, None)


def test_matches_of_an_earlier_version_are_counted_apart(orders, send, patterns):
    patterns(p="SEQ(A a, B b)")
    send("AB")
    change(orders, "p", "SEQ(A a, B b) WITHIN 1 h", start="migrate")
    send("B")
    (pattern,) = look(orders)["patterns"]
    assert (pattern["state"], pattern["matched"], pattern["earlier_matched"]) == ("alive", 0, 2)


def take_up(http, action, name="p"):
    assert http.post(f"/v1/patterns/{name}/{action}").status_code == 200


def test_a_pattern_that_was_paused_during_a_transaction_has_no_match_in_it(orders, send, patterns):
    patterns(p="SEQ(A a, B b)")
    take_up(orders, "pause")
    send("ABZ")
    take_up(orders, "resume")
    assert matched(look(orders)) == {"p": ("was_paused", 0)}


def test_a_pattern_that_was_paused_for_a_part_of_a_transaction_has_only_the_matches_of_the_others(
    orders, send, patterns
):
    patterns(p="SEQ(A a, B b)", q="SEQ(A a, C c)")
    send("ABA")
    for name in "pq":
        take_up(orders, "pause", name)
    assert matched(look(orders)) == {"p": ("paused", 1), "q": ("paused", 0)}
    send("B")
    for name in "pq":
        take_up(orders, "resume", name)
    send("C")
    found = look(orders)
    assert matched(found) == {"p": ("waiting", 1), "q": ("waiting", 0)}
    assert [(pattern["seen_events"], pattern["broken"]) for pattern in found["patterns"]] == [(4, None), (4, None)]


def declare(http, **changes):
    assert http.patch("/v1/streams/orders", json=changes).status_code == 200


def test_other_end_events_count_from_their_declaration_on(orders, send, patterns):
    patterns(ab="SEQ(A a, B b)", ac="SEQ(A a, NOT C)")
    send("AZ")
    declare(orders, end_events=["Y"])
    found = look(orders)
    assert (found["is_open"], matched(found)) == (False, {"ab": ("closed", 0), "ac": ("closed", 1)})
    assert "Z e2 ended the transaction and its partial match a=e1" in str(found["patterns"])
    send("B")
    found = look(orders)
    assert (found["is_open"], found["total_events"], found["earlier_events"]) == (True, 1, 2)
    assert matched(found) == {"ab": ("waiting", 0), "ac": ("waiting", 0)}


def test_an_event_that_was_no_end_event_when_it_came_ends_nothing(orders, send, patterns):
    patterns(ab="SEQ(A a, B b)", ac="SEQ(A a, NOT C)")
    send("AYB")
    declare(orders, end_events=["Y"])
    found = look(orders)
    assert (found["is_open"], found["total_events"]) == (True, 3)
    assert matched(found) == {"ab": ("alive", 1), "ac": ("alive", 0)}
    send("BY")
    found = look(orders)
    assert (found["is_open"], found["total_events"]) == (False, 5)
    assert matched(found) == {"ab": ("closed", 2), "ac": ("closed", 1)}


@pytest.mark.parametrize(("first", "later"), [(1, 600), (600, 1)])
def test_another_idle_timeout_counts_from_its_declaration_on(orders, send, patterns, stores, first, later):
    patterns(ab="SEQ(A a, B b)", ac="SEQ(A a, NOT C)")
    declare(orders, idle_timeout=first)
    send("A")
    stores.stream_times.tick("orders", Tick(time_us=60_000_000, cause="events"), stores.log.layout)
    declare(orders, idle_timeout=later)
    found = look(orders)
    assert (found["is_open"], matched(found)) == (False, {"ab": ("closed", 0), "ac": ("closed", 1)})
    send("B")
    found = look(orders)
    assert (found["total_events"], found["earlier_events"]) == (1, 1)


@pytest.mark.parametrize(("actions", "count"), [((), 1), (("pause",), 0), (("pause", "resume"), 0)])
def test_a_requested_end_decides_matches_of_patterns_that_run(orders, send, patterns, actions, count):
    patterns(ac="SEQ(A a, NOT C)")
    send("A")
    for action in actions:
        take_up(orders, action, "ac")
    orders.post("/v1/traces/orders/k/end")
    if actions == ("pause",):
        take_up(orders, "resume", "ac")
    assert matched(look(orders)) == {"ac": ("closed", count)}


def test_a_version_that_migrated_sees_nothing_before_a_pause(orders, send, patterns):
    patterns(p="SEQ(A a, B b)")
    send("A")
    change(orders, "p", "SEQ(A a, B b) WITHIN 1 h", start="migrate")
    for action in ("pause", "resume"):
        orders.post(f"/v1/patterns/p/{action}")
    send("B")
    assert matched(look(orders)) == {"p": ("waiting", 0)}


def test_a_pattern_that_was_paused_keeps_its_matches_in_a_transaction_that_is_over(orders, send, patterns, stores):
    patterns(p="SEQ(A a, B b)")
    (shard,) = send("ABZ") or look(orders)["positions"]
    for action in ("pause", "resume"):
        orders.post(f"/v1/patterns/p/{action}")
    assert matched(look(orders)) == {"p": ("closed", 1)}
    stores.client.xtrim(f"forestall:log:{shard}", maxlen=3, approximate=False)  # without the first start of the pattern
    assert matched(look(orders))["p"][0] != "registered_later"


def test_a_version_that_replaced_a_paused_one_is_not_taken_for_resumed(orders, send, patterns, stores, clock):
    patterns(p="SEQ(A a, B b)")
    (shard,) = send("ABZ") or look(orders)["positions"]
    orders.post("/v1/patterns/p/pause")
    seconds, _ = stores.client.time()  # positions of the log have the time of Redis
    clock.time_us = (seconds + 60) * 1_000_000
    change(orders, "p", "SEQ(A a, B b, Z z)")
    stores.client.xtrim(f"forestall:log:{shard}", maxlen=3, approximate=False)  # without the first start of the pattern
    assert matched(look(orders)) == {"p": ("registered_later", 0)}


def test_constraints_count_for_transactions_that_begin_later(orders, send):
    send("A")
    orders.post("/v1/constraints", json={"stream": "orders", "constraints": ["exclusive(A, C)"]})
    assert look(orders)["constraints_version"] is None
    send("A", key="j")
    assert look(orders, "j")["constraints_version"] == 1


def test_what_may_come_does_not_wait_for_late_events(http):
    stream = {"name": "slow", "key": "data.id", "lateness": 60}
    assert http.post("/v1/streams", json=stream).status_code == 201
    http.post("/v1/constraints", json={"stream": "slow", "constraints": ["exclusive(B, C)"]})
    events = [
        {"id": f"e{number}", "type": name, "time": time_s * 1_000_000, "data": {"id": "k"}}
        for number, (name, time_s) in enumerate([("A", 500), ("B", 470)])
    ]
    assert http.post("/v1/events?stream=slow", json=events).json()["rejected"] == []
    found = http.get("/v1/traces/slow/k").json()
    assert {one["event_type"]: one["is_possible"] for one in found["following"]} == {"B": True, "C": False}


def test_a_part_of_the_log_that_is_gone_is_told(orders, send, stores):
    send("A")
    send("B")
    (shard,) = look(orders)["positions"]
    stores.client.xtrim(f"forestall:log:{shard}", maxlen=1, approximate=False)
    found = look(orders)
    assert (found["is_complete"], [event["type"] for event in found["newest_events"]]) == (False, ["B"])


def test_what_is_unknown_is_said(orders, send, check_problem):
    check_problem(orders.get("/v1/traces/orders/k"), 404, "unknown-trace")
    check_problem(orders.get("/v1/traces/nowhere/k"), 404, "unknown-stream")
    send("A", key="a/b")
    assert look(orders, "a/b")["key"] == "a/b"


def test_a_transaction_that_is_too_long_is_refused(orders, send, check_problem, monkeypatch):
    monkeypatch.setattr("service.trials.traces._MOST_EVENTS", 2)
    send("AAA")
    check_problem(orders.get("/v1/traces/orders/k"), 413, "trace-too-long")
    trace = orders.get("/v1/traces/orders/k?replay=false").json()
    assert (trace["total_events"], len(trace["newest_events"])) == (3, 3)
    assert (trace["is_open"], trace["patterns"], trace["following"]) == (True, [], [])


@pytest.mark.parametrize(
    ("text", "types", "event", "reason"),
    [
        ("SEQ(A a, NOT H h, B b)", "AH", "e2", "H e2 ended its partial match a=e1"),
        ("SEQ(A a, NOT H h, B b)", "AXHX", "e3", "H e3 ended its partial match a=e1"),
        (
            "SEQ(A a, B b) WITHIN 2 s",
            "AXXXX",
            None,
            "WITHIN ended the partial match a=e1 at 1970-01-01T00:00:03.000000Z",
        ),
        ("SEQ(A a, B b)", "AXZ", "e3", "Z e3 ended the transaction and its partial match a=e1"),
    ],
)
def test_a_partial_match_that_ended_without_a_match_is_named(orders, send, patterns, text, types, event, reason):
    patterns(p=text)
    send(types)
    (found,) = look(orders)["patterns"]
    assert (found["broken"]["event"], found["broken"]["reason"], found["matched"]) == (event, reason, 0)
    assert (found["broken"]["bindings"], found["partial_matches"], found["state"] == "alive") == (
        {"a": ["e1"]},
        0,
        False,
    )


@pytest.mark.parametrize("types", ["XX", "AHA", "AHAB", "AB"])
def test_a_pattern_that_holds_or_has_matched_since_has_no_broken_match(orders, send, patterns, types):
    patterns(p="SEQ(A a, NOT H h, B b) SELECT NEXT")
    send(types)
    (found,) = look(orders)["patterns"]
    assert (found["broken"], found["is_broken_examined"]) == (None, True)


def test_long_transactions_are_not_examined_event_by_event(orders, send, patterns):
    patterns(p="SEQ(A a, NOT H h, B b)", q="SEQ(A a, B b)")
    send("AH")
    for _ in range(6):
        send("X" * 50)
    found = {pattern["name"]: pattern for pattern in look(orders)["patterns"]}
    assert (found["p"]["broken"], found["p"]["state"], found["p"]["is_broken_examined"]) == (None, "waiting", False)
    assert (found["q"]["broken"], found["q"]["state"], found["q"]["is_broken_examined"]) == (None, "alive", True)


@pytest.fixture
def shop(http):
    """A client of a service with a stream that has a further key, and a pattern on it."""
    declared = {"name": "shop", "key": "data.id", "keys": {"customer": "data.customer"}, "end_events": ["Z"]}
    assert http.post("/v1/streams", json=declared).status_code == 201
    text = "PATTERN habit EVENT SEQ(A a, NOT H h, B b) WHERE [customer] WITHIN 1 h"
    assert http.post("/v1/patterns", json={"stream": "shop", "text": text}).status_code == 201
    return http


def sell(http, *events):
    """Posts events of orders of a customer, one second apart."""
    found = [
        {"id": f"e{second}", "type": kind, "time": second * 1_000_000, "data": {"id": order, "customer": customer}}
        for second, (kind, order, customer) in enumerate(events, start=1)
    ]
    assert http.post("/v1/events?stream=shop", json=found).json()["rejected"] == []


def test_a_pattern_of_a_further_key_names_the_transactions_where_it_is(shop):
    sell(shop, ("A", "o1", "ann"), ("H", "o2", "ann"))
    (found,) = shop.get("/v1/traces/shop/o1").json()["patterns"]
    assert (found["state"], found["route"], found["route_keys"]) == ("other_key", "customer", ["ann"])
    assert found["more_route_keys"] == 0


def test_a_transaction_says_how_many_values_of_a_further_key_it_leaves_out(shop):
    sell(shop, *(("A", "o1", f"c{number}") for number in range(23)))
    (found,) = shop.get("/v1/traces/shop/o1").json()["patterns"]
    assert (len(found["route_keys"]), found["more_route_keys"]) == (20, 3)


@pytest.mark.parametrize("more", [0, 2])
def test_a_transaction_says_how_many_types_were_not_examined(orders, send, more):
    types = {"end_events": [f"T{number:02}" for number in range(50 + more)]}
    assert orders.patch("/v1/streams/orders", json=types).status_code == 200
    send("A")
    found = look(orders)
    assert (len(found["following"]), found["more_types"]) == (50, more)


@pytest.mark.parametrize(
    ("events", "state", "reason"),
    [
        ([("A", "o1", "ann"), ("H", "o2", "ann")], "waiting", "H e2 ended its partial match a=e1"),
        ([("A", "o1", "ann"), ("H", "o2", "bob")], "alive", None),
        ([("A", "o1", "ann"), ("Z", "o1", "ann")], "alive", None),
    ],
)
def test_a_transaction_of_a_further_key_says_what_ended_each_pattern(shop, events, state, reason):
    shop.post("/v1/patterns", json={"stream": "shop", "text": "PATTERN own EVENT SEQ(A a, H h)"})
    sell(shop, *events)
    found = shop.get("/v1/traces/shop/ann?by=customer").json()
    assert (found["route"], found["is_open"], found["following"]) == ("customer", True, [])
    (pattern,) = found["patterns"]
    assert (pattern["name"], pattern["state"], pattern["route"]) == ("habit", state, "customer")
    assert (pattern["broken"] and pattern["broken"]["reason"]) == reason


def test_within_of_a_further_key_passes_with_the_time_of_the_stream(shop, stores):
    sell(shop, ("A", "o1", "ann"))
    stores.stream_times.tick("shop", Tick(time_us=2 * 3_600_000_000, cause="events"), stores.log.layout)
    (pattern,) = shop.get("/v1/traces/shop/ann?by=customer").json()["patterns"]
    assert pattern["broken"]["reason"] == "WITHIN ended the partial match a=e1 at 1970-01-01T01:00:01.000000Z"


def test_a_further_key_that_is_unknown_or_unused_is_said(shop, orders, check_problem):
    body = check_problem(shop.get("/v1/traces/shop/ann?by=region"), 400, "stream-declaration")
    assert "region" in body["detail"]
    body = check_problem(shop.get("/v1/traces/shop/ann?by=customer"), 404, "unknown-trace")
    assert "whose customer is 'ann'" in body["detail"]


@pytest.fixture
def derive(orders, stores, clock):
    """Lets the pipeline report events of the derived stream ``payments``, to which patterns listen."""
    text = "PATTERN paid EVENT A a RETURN a.c AS c INTO payments"
    assert orders.post("/v1/patterns", json={"stream": "orders", "text": text}).status_code == 201

    epochs = iter(range(1, 10))

    def reported(*events, key="k", watermark=0, rekeyed=False):
        rows, epoch = [], next(epochs)
        for place, (kind, second) in enumerate(events):
            event = {"id": f"d{place}", "stream": "orders", "into": "payments", "type": kind, "key": key, "data": {}}
            event |= {"time": format_time(second * 1_000_000), "pattern": "paid", "version": 1}
            event |= {"source_key": "k", "rekeyed": rekeyed}
            rows.append(sink_row(kind="derived", stream="orders", id=event["id"], body=orjson.dumps(event)))
        shard = key_hash("k") % stores.log.layout.read().shards
        streams = {"payments": {"watermark_us": watermark * 1_000_000}}
        AlertSink(stores, clock)(
            [*rows, stats_row(shard, f"{epoch}-0", after=f"{epoch - 1}-0", streams=streams)], epoch
        )

    return reported


@pytest.mark.parametrize(
    ("events", "watermark", "rekeyed", "broken"),
    [
        ([("A", 1), ("H", 2)], 2, False, "H d1 ended its partial match a=d0"),
        ([("H", 2), ("A", 1)], 2, False, None),
        ([("H", 2), ("A", 1)], 2, True, "H d0 ended its partial match a=d1"),
        ([("A", 1)], 7200, False, "WITHIN ended the partial match a=d0 at 1970-01-01T01:00:01.000000Z"),
        ([("A", 1)], 20, False, None),
    ],
)
def test_a_transaction_of_a_derived_stream_says_what_ended_each_pattern(
    orders, derive, events, watermark, rekeyed, broken
):
    text = "PATTERN p EVENT SEQ(A a, NOT H h, B b) WITHIN 1 h"
    assert orders.post("/v1/patterns", json={"stream": "payments", "text": text}).status_code == 201
    derive(*events, ("A", 5), key="other")
    derive(*events, watermark=watermark, rekeyed=rekeyed)
    found = orders.get("/v1/traces/payments/k").json()
    assert (found["total_events"], found["is_complete"], found["positions"]) == (len(events), True, {})
    (pattern,) = found["patterns"]
    assert (pattern["broken"] and pattern["broken"]["reason"]) == broken
    assert pattern["state"] == ("alive" if broken is None else "waiting")


def test_a_derived_stream_without_the_event_says_so(orders, derive, check_problem):
    derive(("A", 1))
    check_problem(orders.get("/v1/traces/payments/j"), 404, "unknown-trace")
    check_problem(orders.get("/v1/traces/payments/k?by=c"), 400, "stream-declaration")
