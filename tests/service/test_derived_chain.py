"""A chain of derived streams with two other keys, by the sink, the log and the shards, which fail at any command."""

import random
from typing import Any

import numpy as np
import orjson
import pytest

from pipeline.held_shards import HeldOptions, HeldShards
from pipeline.sources.log_reader import EventLogReader, log_ends
from pipeline.sources.log_reading import connect, read_entries
from service import AlertSink, Registration, Stores
from service.intake.posting import Intake
from service.processes import timekeeper
from service.processes.cluster import job_options
from service.processes.timekeeper import Timekeeper
from service.stores.conditions import ANY
from service.stores.log.layout import DERIVED_MARKS_KEY
from service.upkeep.resharding import match_to_end, reshard
from shards import InlineShards, RowBlock, rows_of
from streams import (
    DERIVED_PROMISES_KEY,
    EventBatch,
    PatternOn,
    StreamDeclaration,
    StreamOn,
    format_time,
    parse_each,
    parse_plain,
)
from tests.builders.job import match_log
from tests.builders.registering import register_pattern
from tests.builders.service import HandClock, settings_for

pytestmark = [pytest.mark.redis, pytest.mark.slow]

ORDERS = StreamDeclaration(name="orders", key="data.order")
PATTERNS = {
    "paid": (
        "orders",
        (
            "PATTERN paid EVENT SEQ(Placed p, Paid q) "
            "RETURN p.customer AS customer, p.region AS region, q.sum AS sum INTO payments KEY customer"
        ),
    ),
    "habit": (
        "payments",
        (
            "PATTERN habit EVENT SEQ(paid a, paid b [sum > a.sum]) SELECT SKIP PAST LAST "
            "RETURN b.region AS region, b.customer AS customer INTO habits KEY region TYPE Habit"
        ),
    ),
    "cluster": ("habits", "PATTERN cluster EVENT SEQ(Habit a, Habit b [customer != a.customer]) SELECT SKIP PAST LAST"),
}
REGISTERED = list(PATTERNS.items())


def posted(seed, orders=50):
    """Plain events of some orders, by time, in batches."""
    chance = random.Random(seed)
    events: list[dict[str, Any]] = []
    for number in range(orders):
        customer = chance.randrange(9)
        base = {"order": f"o{number}", "customer": f"c{customer}", "region": customer % 3, "sum": chance.randrange(99)}
        first = chance.randrange(1_000)
        for step, (kind, second) in enumerate((("Placed", first), ("Paid", first + chance.randrange(1, 400)))):
            events.append({"id": f"{number}-{step}", "type": kind, "time": second * 1_000_000, "data": base})
    events.sort(key=lambda event: event["time"])
    size = chance.choice((7, 20, 100))
    return [events[start : start + size] for start in range(0, len(events), size)]


def expected(batches):
    """Ids of all alerts and derived events, by shards in this process."""
    shards, rows = InlineShards(3), []
    for declared in (ORDERS, *(StreamDeclaration(name=name, derived=True) for name in ("payments", "habits"))):
        shards.append_record(declared.name, StreamOn(declared))
    for name, (stream, text) in REGISTERED:
        shards.append_record(stream, PatternOn(name=name, version=1, text=text))
    for batch in batches:
        events = [event for _, event in parse_each(batch, lambda value: parse_plain(value, ORDERS)).events]
        shards.feed("orders", EventBatch.from_events(events))
        rows += shards.settle()
    rows += shards.pause()
    return sorted(row.id for row in rows_of(rows) if row.kind in ("alert", "derived"))


class Killed(BaseException):
    """Stands for the end of the process."""


class Job:
    """The job without Spark: what a micro-batch holds is planned and kept before it runs, as Spark does."""

    def __init__(self, settings, stores):
        self.options = job_options(settings, stores.log.layout.read(), stores.url, tasks=1)
        self.begin = EventLogReader(self.options.log).initialOffset()
        self.plan, self.epoch, self.held = None, 0, None

    def step(self, stores, chance):
        """Run the planned micro-batch again, or the next one; whether there was any.

        Shards are held from one to the next, but not by a process that fails or that is started anew.
        """
        server = connect(self.options.log)
        if self.plan is None:
            ends = log_ends(self.options.log)
            for shard, after in self.begin.items():
                entries = (
                    [] if ends[shard] == after else next(iter(read_entries(server, int(shard), after, ends[shard])))
                )
                wanted = entries[: chance.randrange(len(entries) + 1)] if chance.random() < 0.5 else entries
                ends[shard] = wanted[-1].position if wanted else after
            self.plan = ends
        held, self.held = self.held, None
        if held is None or chance.random() < 0.2:
            held = HeldShards(HeldOptions(log=self.options.log, handover=None))
        rows: list[RowBlock] = []
        news = False
        for shard, after in self.begin.items():
            if self.plan[shard] != after:
                news = True
                entries = [
                    entry for page in read_entries(server, int(shard), after, self.plan[shard]) for entry in page
                ]
                rows += held.advance(int(shard), after, entries)
        server.close()
        if news:
            AlertSink(stores, HandClock())(rows_of(rows), self.epoch)
        self.begin, self.plan, self.epoch, self.held = self.plan, None, self.epoch + 1, held
        return news


@pytest.fixture
def settings(server_url, tmp_path):
    return settings_for(server_url, data_dir=tmp_path / "data", shards=3)


def settled(job, stores, chance):
    """Run micro-batches until there is no news."""
    quiet = 0
    while quiet < 3:
        quiet = 0 if job.step(stores, chance) else quiet + 1


def mortal(stores, chance, most):
    """Let a random command of these stores be the last, before or after it has taken effect."""
    execute, left, is_done = stores.client.execute_command, [chance.randrange(1, most)], chance.random() < 0.5

    def killing(*command, **options):
        left[0] -= 1
        if left[0] == 0 and not is_done:
            raise Killed
        found = execute(*command, **options)
        if left[0] == 0:
            raise Killed
        return found

    stores.client.execute_command = killing


@pytest.mark.parametrize("seed", range(4))
def test_a_chain_over_two_keys_gives_what_one_process_gives_whatever_is_killed(
    client, server_url, settings, clock, monkeypatch, seed
):
    monkeypatch.setattr(timekeeper, "_QUIET_US", 0)
    chance, batches = random.Random(seed), posted(seed)
    stores = Stores(client, server_url, settings)
    registration = Registration(stores, settings, clock)
    registration.declare_stream(ORDERS)
    for _, (stream, text) in REGISTERED:
        register_pattern(registration, stream, text)
    intake, job, kills = Intake(stores.log, stores.registry, settings.limits, clock), Job(settings, stores), 0
    for batch in batches:
        intake.ingest("orders", batch)
        if chance.random() < 0.5:
            Timekeeper(stores).look()
        with monkeypatch.context() as patch:
            patch.setattr(client, "execute_command", client.execute_command)
            mortal(stores, chance, 40)
            try:
                for _ in range(chance.randrange(4)):
                    job.step(stores, chance)
            except Killed:
                kills += 1
    for _ in range(8):
        Timekeeper(stores).look()
        settled(job, stores, chance)
    found = [alert["id"] for alert in stores.alerts.page(limit=10_000).items]
    events = [event["id"] for event in stores.results["derived"].page(10_000).items]
    assert sorted([*found, *events]) == expected(batches)
    assert found
    assert kills or len(batches) < 9
    in_log = [event for shard in range(3) for event in logged(stores, shard)]
    assert sorted(in_log) == sorted(
        event["id"] for event in stores.results["derived"].page(10_000).items if event["rekeyed"]
    )
    assert stores.dead_letters.page(9).items == []
    backlog = stores.backlog.read()
    assert backlog.appended == backlog.matched


def test_a_chain_goes_on_in_a_log_that_is_divided(client, server_url, settings, clock, monkeypatch):
    monkeypatch.setattr(timekeeper, "_QUIET_US", 0)
    batches = [
        part for batch in posted(1) for part in (batch[start : start + 10] for start in range(0, len(batch), 10))
    ]
    stores = Stores(client, server_url, settings)
    registration = Registration(stores, settings, clock)
    registration.declare_stream(ORDERS)
    for _, (stream, text) in REGISTERED:
        register_pattern(registration, stream, text)
    intake = Intake(stores.log, stores.registry, settings.limits, clock)

    def matched(settings=settings, stores=stores, layout=None):
        options = job_options(settings, layout or stores.log.layout.read(), stores.url, tasks=1)
        match_to_end(options.log, lambda: match_log(options, AlertSink(stores, HandClock())))

    monkeypatch.setattr("service.upkeep.resharding.match_all", matched)
    half = len(batches) // 2
    for batch in batches[:half]:
        intake.ingest("orders", batch)
    assert reshard(settings, stores, 6, lambda _: None).shards == 6
    assert stores.results["derived"].page(1).items, "what the old shards derive is in the log before it is divided"
    assert client.exists(DERIVED_MARKS_KEY, DERIVED_PROMISES_KEY) == 0
    for batch in batches[half:]:
        intake.ingest("orders", batch)
    for _ in range(8):
        Timekeeper(stores).look()
        matched()
    found = [alert["id"] for alert in stores.alerts.page(limit=10_000).items]
    assert sorted([*found, *(event["id"] for event in stores.results["derived"].page(10_000).items)]) == expected(
        batches
    )
    client.flushall()


@pytest.mark.parametrize("seed", range(2))
def test_a_chain_that_is_removed_and_declared_again_finds_what_a_new_one_finds(
    client, server_url, settings, clock, monkeypatch, seed
):
    """The first life has later times, and a part of it is matched when the second has begun."""
    monkeypatch.setattr(timekeeper, "_QUIET_US", 0)
    chance, batches = random.Random(seed), posted(seed)
    later = [
        [{**event, "time": format_time(event["time"] + 9_000_000_000)} for event in batch] for batch in posted(seed + 9)
    ]

    def begun(stores):
        registration = Registration(stores, settings, clock)
        registration.declare_stream(ORDERS)
        for _, (stream, text) in REGISTERED:
            register_pattern(registration, stream, text)

    def found_of(stores, job, version):
        intake = Intake(stores.log, stores.registry, settings.limits, clock)
        for batch in batches:
            intake.ingest("orders", batch)
            job.step(stores, chance)
        for _ in range(8):
            Timekeeper(stores).look()
            settled(job, stores, chance)
        made = [event for event in stores.results["derived"].page(10_000).items if event["version"] == version]
        return sorted(orjson.dumps([event[name] for name in ("into", "time", "key", "data")]) for event in made)

    stores = Stores(client, server_url, settings)
    begun(stores)
    expected_events = found_of(stores, Job(settings, stores), 1)
    client.flushall()

    stores = Stores(client, server_url, settings)
    begun(stores)
    job, intake = Job(settings, stores), Intake(stores.log, stores.registry, settings.limits, clock)
    for batch in later:
        intake.ingest("orders", batch)
        for _ in range(chance.randrange(3)):
            Timekeeper(stores).look()
            job.step(stores, chance)
    for name in ("orders", "payments", "habits"):
        stores.registry.removal.remove(name, ANY, is_cascading=True)
        stores.derived.forget(name)
    begun(stores)
    assert found_of(stores, job, 2) == expected_events
    assert stores.dead_letters.page(9).items == []


def logged(stores, shard):
    """Ids of the derived events that a shard's log has, with repetitions."""
    for entry in stores.log.read_range(shard):
        if entry.kind == "events" and entry.stream != "orders":
            batch = EventBatch.from_bytes(entry.body)
            assert np.all(batch.key_hashes % 3 == shard)
            yield from (event.id for event in batch.to_events())


def test_bodies_of_derived_events_are_json_with_what_the_sink_reads(client, server_url, settings, clock):
    stores = Stores(client, server_url, settings)
    registration = Registration(stores, settings, clock)
    registration.declare_stream(ORDERS)
    for _, (stream, text) in REGISTERED:
        register_pattern(registration, stream, text)
    for batch in posted(3):
        Intake(stores.log, stores.registry, settings.limits, clock).ingest("orders", batch)
    settled(Job(settings, stores), stores, random.Random(1))
    body = stores.results["derived"].page(10_000).items[-1]
    named = {"id", "stream", "into", "type", "time", "key", "data", "pattern", "version", "source_key", "rekeyed"}
    assert set(body) == named
    assert orjson.dumps(body["data"])
    assert (body["stream"], body["into"], body["key"]) == ("orders", "payments", body["data"]["customer"])
