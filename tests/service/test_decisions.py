"""What is decided by what all shards observe, by the sink, the log and the shards on a real server."""

import random

import numpy as np
import orjson
import pytest

from pipeline.held_shards import HeldOptions, HeldShards
from pipeline.sources.log_reader import log_ends
from pipeline.sources.log_reading import connect, read_entries
from service import AlertSink, Registration, Stores
from service.delivery.decisions import PAUSE_US, Decisions
from service.intake.posting import Intake
from service.processes.cluster import job_options
from service.processes.timekeeper import Timekeeper
from service.registering.operators import OperatorLibrary
from service.stores.log.deciders import DECIDERS_KEY
from service.upkeep.resharding import match_to_end, reshard
from shards import LATENESS, WAIT, Observation, ShardState
from streams import LAYOUT_KEY, AutoLateness, Lags, RecordKind, StreamDeclaration, decode_control, lateness_summary
from tests.builders.job import match_log
from tests.builders.registering import register_pattern
from tests.builders.service import as_old_as_the_log, settings_for, stats_row

pytestmark = pytest.mark.redis

SECOND = 1_000_000
START = 1_767_225_600 * SECOND
DECLARED = AutoLateness(start=4)
ORDERS = StreamDeclaration(name="orders", key="data.order", lateness=DECLARED)


@pytest.fixture
def settings(server_url, tmp_path):
    return settings_for(server_url, data_dir=tmp_path / "data", shards=3)


@pytest.fixture
def stores(client, server_url, settings):
    return Stores(client, server_url, settings)


@pytest.fixture
def orders(stores, settings, clock):
    registration = Registration(stores, settings, clock)
    registration.declare_stream(ORDERS)
    register_pattern(registration, "orders", "PATTERN pair EVENT SEQ(A a, U u) SELECT SKIP PAST LAST")
    return stores


class Service:
    """Intake, timekeeper, shards and sink, without Spark; each call of ``match`` is another process."""

    def __init__(self, settings, stores, clock):
        self.settings, self.stores, self.clock = settings, stores, clock
        self.intake = Intake(stores.log, stores.registry, settings.limits, clock)

    def post(self, events, stream="orders"):
        report = self.intake.ingest(stream, events)
        assert report.accepted == len(events)

    def match(self):
        Timekeeper(self.stores).look()
        self.match_log(self.stores)

    def match_log(self, stores):
        options = job_options(self.settings, stores.log.layout.read(), stores.url, tasks=1)
        match_to_end(options.log, lambda: match_log(options, AlertSink(stores, self.clock)))


@pytest.fixture
def service(settings, orders, clock):
    return Service(settings, orders, clock)


def plain(seed, first, delay, count=120):
    """Events that come up to ``delay`` seconds too late, one per second of event time."""
    chance = random.Random(seed)
    arrivals = sorted((number + chance.uniform(0, delay), number) for number in range(first, first + count))
    return [
        {
            "id": f"e{number}",
            "type": "AU"[number % 2],
            "time": START + number * SECOND,
            "data": {"order": f"o{number % 29}"},
        }
        for _, number in arrivals
    ]


def changes_of(stores, shard):
    return [
        decode_control(RecordKind.LATENESS, entry.body)
        for entry in stores.log.read_range(shard)
        if entry.kind == "lateness"
    ]


def replayed(settings, stores):
    """The shards that read the whole log once more, and the ids of what they find."""
    options = job_options(settings, stores.log.layout.read(), stores.url, tasks=1)
    states, found = [], []
    for shard in range(stores.log.layout.read().shards):
        state = ShardState(shard)
        rows = state.apply(entries_of(options.log, shard))
        found += [row.id for row in rows if row.kind in ("alert", "dead-letter")]
        states.append(state)
    return states, sorted(found)


def entries_of(log, shard, after="0-0"):
    server = connect(log)
    found = [entry for page in read_entries(server, shard, after, log_ends(log)[str(shard)]) for entry in page]
    server.close()
    return found


def bounds(states):
    return {state.measures()["orders"]["lateness_us"] for state in states}


def test_what_is_measured_changes_the_bound_at_one_place_of_the_log_and_a_replay_gives_the_same(
    service, orders, settings, clock
):
    for batch in range(12):
        service.post(plain(batch, 120 * batch, 2 if batch < 3 else 40))
        service.match()
        clock.forward(6)
    changes = [changes_of(orders, shard) for shard in range(3)]
    assert changes[0] == changes[1] == changes[2]
    assert [change.number for change in changes[0]] == list(range(1, len(changes[0]) + 1))
    assert 1 <= len(changes[0]) < 6
    record = orders.deciders.get("orders", LATENESS)
    assert [one.record["bound"] for one in record.decisions] == [change.bound_us for change in changes[0]]
    states, found = replayed(settings, orders)
    assert bounds(states) == {changes[0][-1].bound_us}
    assert 30 * SECOND < changes[0][-1].bound_us <= 50 * SECOND
    alerts = [alert["id"] for alert in orders.alerts.page(limit=10_000).items]
    letters = [letter["id"] for letter in orders.dead_letters.page(10_000).items]
    assert sorted([*alerts, *letters]) == found
    assert alerts


def test_a_declared_bound_takes_its_place_and_gives_it_back(service, orders, settings, clock):
    library = Registration(orders, settings, clock)
    service.post(plain(1, 0, 40))
    service.match()
    assert len(changes_of(orders, 0)) == 1
    library.change_stream("orders", {"lateness": 90})
    service.post(plain(2, 120, 40))
    service.match()
    library.change_stream("orders", {"lateness": DECLARED})
    clock.forward(6)
    service.post(plain(3, 240, 40))
    service.match()
    assert bounds(replayed(settings, orders)[0]) == {90 * SECOND}
    assert len(changes_of(orders, 0)) == 1, "90 s are enough"
    clock.forward(6)
    service.post(plain(4, 360, 300, count=400))
    service.match()
    change = changes_of(orders, 0)[-1]
    assert (change.number, change.bound_us > 90 * SECOND) == (2, True)
    assert orders.registry.stream("orders").lateness == DECLARED


def test_a_log_that_is_divided_goes_on_with_its_bound(service, orders, settings, clock, monkeypatch, client):
    service.post(plain(1, 0, 40))
    service.match()
    (change,) = changes_of(orders, 0)
    service.post(plain(2, 120, 300, count=300))  # decided on while the log is held: forgotten
    monkeypatch.setattr("service.upkeep.resharding.match_all", lambda _, stores, *__: service.match_log(stores))
    assert reshard(settings, orders, 6, lambda _: None).shards == 6
    clock.forward(6)
    service.post(plain(3, 420, 300, count=300))
    service.match()
    assert [one.number for one in changes_of(orders, 5)] == [change.number + 1]
    client.flushall()


PAID = {
    "name": "paid",
    "inputs": [{"stream": "placed", "as": "o"}, {"stream": "payments", "as": "p", "key": "data.order"}],
    "wait": "auto",
    "return": {"order": "id(o)", "payment": "id(p)"},
}


def numbered(stream, first, count=700):
    """Events of numbers that rise, each up to 20 places too late."""
    chance = random.Random(f"{stream}{first}")
    order = sorted(range(first, first + count), key=lambda number: number + chance.uniform(0, 20))
    return [
        {
            "id": f"{stream}{number}",
            "type": "T",
            "time": START + (first + place) * SECOND,
            "key": str(number % 1_000_000),
        }
        | {"data": {"order": number}}
        for place, number in enumerate(order)
    ]


def test_keys_of_a_join_are_finished_at_one_place_of_the_log_and_a_replay_gives_the_same(
    service, orders, settings, clock
):
    for name in ("placed", "payments"):
        orders.registry.declare_stream(StreamDeclaration(name=name, key="subject"))
    library = OperatorLibrary(orders, clock)
    library.put("join", PAID)
    assert not any(sentence.startswith("o: keys come") for sentence in library.explain("join", "paid").sentences)
    held = []
    for batch in range(6):
        for stream in ("placed", "payments"):
            service.post(numbered(stream, 700 * batch), stream)
        service.match()
        clock.forward(6)
        held.append(sum(one.streams["paid.inputs"].operators["join_stored"] for one in orders.pipeline_status.shards()))
    closed = [
        [
            decode_control(RecordKind.KEYS_CLOSED, entry.body)
            for entry in orders.log.read_range(shard)
            if entry.kind == "keys-closed"
        ]
        for shard in range(3)
    ]
    assert closed[0] == closed[1] == closed[2]
    record = orders.deciders.get("paid.inputs", WAIT)
    assert record.total == len(closed[0]) > 2
    assert record.decisions[-1].record == closed[0][-1].to_json()
    said = {one["input"]: one["to"] for found in closed[0] for one in found.to_json()["closed"]}
    assert min(said["o"], said["p"]) > 2_500
    assert max(held) < 5_000, "of 8,400"
    states, _ = replayed(settings, orders)
    joined = sum(state.measures()["paid.inputs"]["join_results"] for state in states)
    pairs = orders.results["derived"].page(10_000).items
    assert joined == sum(one["into"] == "paid" for one in pairs) > 3_000
    assert sum(state.measures()["paid.inputs"]["join_violations"] for state in states) == 0
    (sentence,) = [one for one in library.explain("join", "paid").sentences if one.startswith("o: keys come up to ")]
    assert f"; keys up to {said['o']} are finished (decided at " in sentence
    assert " events came for a finished key (accuracy about 100.0000%)" in sentence


def test_a_join_that_holds_more_than_it_may_is_suspended_with_the_figures(service, orders, clock):
    for name in ("placed", "payments"):
        orders.registry.declare_stream(StreamDeclaration(name=name, key="subject"))
    library = OperatorLibrary(orders, clock)
    library.put("join", {**PAID, "memory": {"rows": 50}})
    service.post(numbered("placed", 0, 300), "placed")
    service.post(numbered("payments", 400, 1), "payments")
    for _ in range(4):
        service.match()
    record = orders.registry.operators("join").get("paid")
    assert record.state == "suspended"
    (told,) = orders.results["join-suspension"].page(10).items
    assert "events in a shard, and its memory is 50 rows; keys of o come up to " in told["reason"]
    assert "With 'spill: true' in its memory" in told["reason"]


# --- one decider --------------------------------------------------------------------------------------------------


def row(shard, position, lag_s, bound_s=4, number=0):
    lags = Lags()
    lags.add(np.array([0, round(lag_s * SECOND)]), DECLARED.at_most_us)
    summary = lateness_summary(DECLARED, bound_s * SECOND, number, lags)
    observed = [Observation(stream="orders", decider=LATENESS, summary=summary).to_json()]
    return stats_row(shard, position, after="0-0", observed=observed)


@pytest.fixture
def decisions(orders, clock):
    as_old_as_the_log(orders.client, "orders")
    return Decisions(orders.deciders, clock)


def said(stores):
    return [(change.number, change.bound_us // SECOND) for change in changes_of(stores, 1)]


def test_all_shards_of_a_micro_batch_decide_together_and_once(decisions, orders):
    rows = [row(0, "1-0", 8), row(1, "1-0", 16), row(2, "1-0", 1)]
    decisions(rows)
    assert said(orders) == [(1, 20)]
    decisions(rows)
    before = orders.deciders.get("orders", LATENESS)
    assert (before.total, before.positions) == (1, {"0": "1-0", "1": "1-0", "2": "1-0"})
    assert before.state is not None
    assert before.state["open"]["events"] == 6, "a micro-batch that is written again is not observed again"


def test_changes_are_some_seconds_apart(decisions, orders, clock):
    decisions([row(0, "1-0", 8)])
    decisions([row(0, "2-0", 40)])
    assert said(orders) == [(1, 10)]
    clock.forward(PAUSE_US / SECOND)
    decisions([row(0, "3-0", 1)])
    assert said(orders) == [(1, 10), (2, 50)]


def test_of_two_drivers_one_decides(decisions, orders, settings, clock, monkeypatch):
    put, others = orders.deciders.put, [Decisions(Stores(orders.client, orders.url, settings).deciders, clock)]

    def second(*given):
        if others:
            others.pop()([row(0, "1-0", 8)])
        return put(*given)

    monkeypatch.setattr(orders.deciders, "put", second)
    decisions([row(0, "1-0", 8)])
    assert said(orders) == [(1, 10)]


def test_a_decider_that_cannot_be_read_begins_anew(decisions, orders, client):
    client.hset(DECIDERS_KEY, f"orders {LATENESS}", orjson.dumps({"format": 99}))
    decisions([row(0, "1-0", 8)])
    assert said(orders) == [(1, 10)]


def test_nothing_is_said_to_a_stream_that_is_gone_and_its_decider_goes_with_it(
    decisions, orders, settings, clock, client
):
    library = Registration(orders, settings, clock)
    orders.registry.declare_stream(StreamDeclaration(name="orders2", lateness=DECLARED))
    decisions([row(0, "1-0", 8)])
    client.hset(DECIDERS_KEY, f"orders2 {LATENESS}", client.hget(DECIDERS_KEY, f"orders {LATENESS}"))
    library.remove_stream("orders", is_cascading=True)
    assert client.hkeys(DECIDERS_KEY) == [f"orders2 {LATENESS}".encode()]
    decisions([row(0, "2-0", 80)])
    assert client.hkeys(DECIDERS_KEY) == [f"orders2 {LATENESS}".encode()]
    assert said(orders) == [(1, 10)]


def test_while_the_log_is_divided_nothing_is_decided(decisions, orders, client):
    client.hset(LAYOUT_KEY, "resharding", "token")
    decisions([row(0, "1-0", 8)])
    assert (said(orders), client.exists(DECIDERS_KEY)) == ([], 0)
    client.hdel(LAYOUT_KEY, "resharding")
    decisions([row(0, "2-0", 8)])
    assert said(orders) == [(1, 10)]


def test_only_the_newest_decisions_are_kept(decisions, orders, clock):
    for number in range(25):
        clock.forward(6)
        decisions([row(0, f"{number + 1}-0", 8 * 1.2**number, 4, 0)])
    record = orders.deciders.get("orders", LATENESS)
    assert record.total > len(record.decisions) == 20
    assert record.decisions[-1].record["number"] == said(orders)[-1][0]


def test_a_micro_batch_says_what_its_shards_observed_and_a_rebuilt_one_only_its_own(service, orders, settings):
    service.post(plain(1, 0, 40))
    options = job_options(settings, orders.log.layout.read(), orders.url, tasks=1)

    def events_of(held, after, entries):
        *_, stats = held.advance(0, after, entries)
        (found,) = stats.found.bodies.to_pylist()
        return [one["summary"]["lags"]["events"] for one in orjson.loads(found)["observed"]]

    entries = entries_of(options.log, 0)
    held = HeldShards(HeldOptions(log=options.log, handover=None))
    assert events_of(held, "0-0", entries[:-1]) == []
    (first,) = events_of(held, entries[-2].position, entries[-1:])
    service.post(plain(2, 120, 40))
    reached = entries[-1].position
    (second,) = events_of(
        HeldShards(HeldOptions(log=options.log, handover=None)), reached, entries_of(options.log, 0, reached)
    )
    assert 0 < first < 120
    assert 0 < second < 120
