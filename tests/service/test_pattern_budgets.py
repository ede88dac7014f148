"""Patterns that cost too much, through the service: intake, log, shards, sink, and the notices to users."""

from __future__ import annotations

from collections import Counter

import orjson
import pytest

from nfa import parse_pattern
from service import AlertSink, DryRuns, Intake, Registration, Stores, WebhookDraft, WebhookLibrary
from service.settings import Limits
from shards import ShardState
from shards.entries import StoredEntry
from streams import StreamDeclaration
from tests.builders.registering import register_pattern
from tests.builders.service import settings_for

pytestmark = pytest.mark.redis

RISING = "PATTERN rising EVENT SEQ(A{3} a [v > coalesce(prev(v), -1)], B b)"
BESIDE = "PATTERN beside EVENT SEQ(A a [v = 7], B b)"
SMALL = {"per_event": 10, "per_trace": 500, "traces": 1, "forgiven_after": 100_000, "in_all": 20_000_000}


class Service:
    """A service whose shards match in this process."""

    def __init__(self, client, server_url, clock, shards=1, **pattern_work):
        webhooks = {"allow_private_targets": True}
        settings = settings_for(server_url, shards=shards, webhooks=webhooks, pattern_work=pattern_work)
        self.stores = Stores(client, server_url, settings)
        self.stores.registry.declare_stream(StreamDeclaration(name="orders", key="data.k"))
        self.registration = Registration(self.stores, settings, clock)
        self.intake = Intake(self.stores.log, self.stores.registry, Limits(), clock)
        WebhookLibrary(self.stores, settings, clock).register(WebhookDraft(url="http://127.0.0.1:1/"))
        self.clock = clock
        self.sink = AlertSink(self.stores, clock)
        self.states = {shard: ShardState(shard) for shard in range(self.stores.log.layout.read().shards)}
        self.batches = 0

    def send(self, key, kinds, first=0):
        """Events of a key with rising values, at most 1,000 in a request."""
        sent = [
            {"id": f"{key}{n}", "type": kind, "time": 1_000_000 + n, "data": {"k": key, "v": n}}
            for n, kind in enumerate(kinds, first)
        ]
        for start in range(0, len(sent), 1_000):
            report = self.intake.ingest("orders", sent[start : start + 1_000])
            assert not report.rejected

    def match(self, *, is_restarted=False):
        """A micro-batch of each shard with all that its log holds; some rows come twice, as after a crash."""
        self.batches += 1
        for shard in self.states:
            if is_restarted:
                self.states[shard] = ShardState.load(self.states[shard].dump())
            rows = self.states[shard].apply(self.entries(shard))
            for _ in range(2):
                self.sink(rows, self.batches)

    def entries(self, shard):
        return [
            StoredEntry(
                position=entry.position,
                kind=entry.kind.value,
                stream=entry.stream,
                route=entry.route,
                body=entry.body,
            )
            for entry in self.stores.log.read_range(shard)
        ]

    def alerts(self):
        return Counter(alert["pattern"] for alert in self.stores.alerts.page(limit=1_000).items)

    def letters(self, code):
        return [letter for letter in self.stores.dead_letters.all() if letter["code"] == code]


def test_ten_thousand_rising_values_end_with_a_reason_and_the_pattern_beside_goes_on(client, server_url, clock):
    service = Service(client, server_url, clock)
    register_pattern(service.registration, "orders", RISING)
    register_pattern(service.registration, "orders", BESIDE)
    service.send("k", "A" * 10_000)
    service.match()
    service.send("k", "B", first=10_000)
    service.send("m", "AAAB")
    service.match()
    (letter,) = service.letters("work-limit")
    assert (letter["pattern"], letter["version"], letter["key"]) == ("rising", 1, "k")
    assert letter["work"] > 10_000_000
    assert letter["event_id"].startswith("k")
    assert "WITHIN" in letter["reason"]
    assert service.alerts() == {"beside": 1, "rising": 1}
    assert service.stores.registry.pattern("rising").state == "active"


@pytest.mark.parametrize("shards", [1, 3])
def test_a_pattern_that_is_given_up_too_often_is_suspended_everywhere_and_resumed(client, server_url, clock, shards):
    service = Service(client, server_url, clock, shards, **SMALL)
    register_pattern(service.registration, "orders", RISING)
    register_pattern(service.registration, "orders", BESIDE)
    service.match()
    for key in range(8):
        service.send(f"k{key}", "A" * 40)
    service.match(is_restarted=True)
    pattern = service.stores.registry.pattern("rising")
    assert (pattern.state, service.stores.registry.pattern("beside").state) == ("suspended", "active")
    said = pattern.suspension or {}
    assert said["budget"] == SMALL
    assert "in more than 1 trace of" in said["reason"]
    assert said["key"] in {f"k{key}" for key in range(8)}
    service.match(is_restarted=True)
    for key in range(8):
        service.send(f"k{key}", "B", first=90)
        service.send(f"m{key}", "AAAAAAAAAB")
    service.match(is_restarted=True)
    assert service.alerts() == {"beside": 16}
    assert len(service.stores.results["suspension"].page(9).items) == 1
    kinds = Counter(delivery.kind for delivery in service.stores.deliveries.claim(clock.now_us(), 1, 99))
    assert kinds["pattern.suspended"] == 1  # among as many as one receiver gets at once

    resumed = service.registration.move_pattern("rising", "resume").pattern
    assert (resumed.state, resumed.version, resumed.suspension) == ("active", 2, None)
    for key in range(8):
        service.send(f"n{key}", "AAAB")
    service.match(is_restarted=True)
    assert service.alerts() == {"beside": 16, "rising": 8}
    assert service.stores.registry.pattern("rising").state == "active"


def test_a_pattern_that_costs_a_little_in_each_of_many_transactions_is_suspended_with_that_reason(
    client, server_url, clock
):
    service = Service(client, server_url, clock, **{**SMALL, "per_trace": 10_000, "in_all": 3_000})
    register_pattern(service.registration, "orders", RISING)
    register_pattern(service.registration, "orders", BESIDE)
    for first in range(0, 40, 8):
        for key in range(8):
            service.send(f"k{key}", "A" * 8, first=first)
    service.match(is_restarted=True)
    assert service.letters("work-limit") == []
    assert service.letters("run-limit") == []
    said = service.stores.registry.pattern("rising").suspension or {}
    assert "in all traces of one shard its events met 3,001 partial matches" in said["reason"]
    assert said["budget"]["in_all"] == 3_000
    for key in range(8):
        service.send(f"k{key}", "B", first=90)
    service.match(is_restarted=True)
    assert service.alerts() == {"beside": 8}


def test_a_state_that_is_divided_into_more_shards_keeps_what_its_patterns_owe(client, server_url, clock):
    service = Service(client, server_url, clock, **SMALL)
    register_pattern(service.registration, "orders", RISING)
    service.send("k0", "A" * 40)
    service.match()
    owing = list(service.states[0].split(1, 2))
    service.send("k1", "A" * 40)
    rows = [orjson.loads(row.body) for state in owing for row in state.apply(service.entries(0)[3:])]
    assert [row["key"] for row in rows if row.get("type") == "pattern.suspended"] == ["k1", "k1"]


def test_a_replay_of_the_log_gives_up_and_suspends_at_the_same_events(client, server_url, clock):
    service = Service(client, server_url, clock, **SMALL)
    register_pattern(service.registration, "orders", RISING)
    for key in range(4):
        service.send(f"k{key}", "A" * 40)
        service.match(is_restarted=key % 2 == 0)
    service.registration.move_pattern("rising", "resume")
    service.send("k9", "A" * 40)
    service.match()
    entries = service.entries(0)
    whole = ShardState(0).apply(entries)
    by_kind = Counter(row.kind for row in whole)
    assert (by_kind["suspension"], by_kind["dead-letter"]) == (1, 3)
    assert {row.id for row in whole if row.kind == "dead-letter"} == {
        one["id"] for one in service.letters("work-limit")
    }
    (told,) = [orjson.loads(row.body) for row in whole if row.kind == "suspension"]
    (kept,) = service.stores.results["suspension"].page(9).items
    assert {name: kept[name] for name in told} == told


def test_registration_and_dry_runs_warn_of_work_that_is_not_bounded(client, server_url, clock, monkeypatch):
    service = Service(client, server_url, clock, **SMALL)
    (warning,) = register_pattern(service.registration, "orders", RISING).warnings
    assert "the work per event is not bounded" in warning
    assert "WITHIN bounds it" in warning
    bounded = RISING.replace("rising", "soon") + " WITHIN 1 h"
    assert register_pattern(service.registration, "orders", bounded).warnings == ()
    service.send("k", "A" * 40)
    tried = DryRuns(service.stores, service.registration).run(
        "orders", parse_pattern(RISING), is_guarded=True, most_events=1_000
    )
    assert tried["warnings"][0] == warning
    assert tried["warnings"][-1].startswith("it was given up in the transaction 'k' at the event 'k")
    monkeypatch.setattr("service.trials.dry_runs._SHOWN_LOSSES", 0)
    tried = DryRuns(service.stores, service.registration).run(
        "orders", parse_pattern(RISING), is_guarded=True, most_events=1_000
    )
    assert tried["warnings"][-1] == "further transactions in which it was given up for the same reason: 1"


def test_other_settings_count_from_the_next_registration_on(client, server_url, clock):
    service = Service(client, server_url, clock, **SMALL)
    register_pattern(service.registration, "orders", RISING)
    generous = Service(client, server_url, clock, **SMALL | {"per_trace": 1_000_000})
    generous.send("k", "A" * 40)
    generous.match()
    assert [letter["key"] for letter in generous.letters("work-limit")] == ["k"]
    generous.registration.move_pattern("rising", "pause")
    generous.registration.move_pattern("rising", "resume")
    generous.send("m", "A" * 40)
    generous.match()
    assert [letter["key"] for letter in generous.letters("work-limit")] == ["k"]
