"""Digests: what webhooks collect arrives once, in bodies that never change, whatever is killed."""

import asyncio
import random
import subprocess
import sys
import time
from collections import defaultdict

import orjson
import pytest
from structlog.testing import capture_logs

from service import WebhookDraft, WebhookLibrary
from service.delivery.deliverer import Deliverer
from service.delivery.digests import MOST_LISTED, close_digest
from service.errors import StoreUnavailable, WebhookRefused
from service.settings import WebhookSettings
from service.stores.deliveries.delivery import RECORDS_KEY
from service.stores.deliveries.delivery_queue import DIGESTS_KEY
from service.stores.results.alerts import BLOCKS_KEY
from tests.builders.delivering import deliver_due
from tests.builders.service import receiving, sink_row

pytestmark = pytest.mark.redis
SECOND_US = 1_000_000


@pytest.fixture
def receiver():
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def clock(clock):
    clock.time_us = time.time_ns() // 1_000  # receivers refuse what is older than minutes
    return clock


@pytest.fixture
def library(stores, settings, clock):
    return WebhookLibrary(stores, settings, clock)


def write(stores, names, now_us, severity="medium"):
    bodies = {name: orjson.dumps({"type": "alert", "id": name, "stream": "s", "pattern": severity}) for name in names}
    rows = [sink_row(kind="alert", stream="s", id=name, body=body) for name, body in bodies.items()]
    stores.alerts.append(rows, stores.webhooks.all(), now_us, severities={severity: severity})


def settings_of(**changes):
    return WebhookSettings(**{"allow_private_targets": True, "attempts": 20, "poll_interval_s": 0.05, **changes})


def deliver(stores, clock):
    worker = Deliverer(stores, settings_of(), clock, random.Random(7))
    while asyncio.run(deliver_due(worker)) or asyncio.run(deliver_due(worker)):
        pass


def bodies(receiver):
    return [orjson.loads(body) for _, body in receiver.received]


def test_results_are_collected_and_critical_ones_are_sent_at_once(stores, clock, library, receiver):
    webhook = library.register(WebhookDraft(url=receiver.url, digest={"every": "10 min", "at_once": "critical"}))
    write(stores, ["a1", "a2"], clock.time_us)
    deliver(stores, clock)
    assert receiver.received == []
    assert library.health(webhook.id).collected == 2
    clock.forward(300)
    write(stores, ["c1"], clock.time_us, "critical")
    row = sink_row(kind="correction", stream="s", id="x1", body=b'{"type":"correction","id":"x1","pattern":"high"}')
    stores.results["correction"].append([row], 1, stores.webhooks.all(), clock.time_us, {"high": "high"})
    deliver(stores, clock)
    assert [one["id"] for one in bodies(receiver)] == ["c1"]
    clock.forward(299)
    deliver(stores, clock)
    assert len(receiver.received) == 1
    clock.forward(1)
    deliver(stores, clock)
    _, digest = bodies(receiver)
    assert receiver.ids()[1] == digest["id"]
    assert (digest["type"], digest["webhook"], digest["more"], digest["next"]) == ("digest", webhook.id, 0, None)
    assert digest["counts"] == {"alert": 2, "correction": 1}
    assert [one["id"] for one in digest["results"]] == ["a1", "a2", "x1"]
    assert digest["results"][0]["severity"] == "medium"
    assert stores.deliveries.queued() == library.health(webhook.id).collected == 0
    write(stores, ["a3"], clock.time_us)
    deliver(stores, clock)
    clock.forward(600)
    deliver(stores, clock)
    assert [one["id"] for one in bodies(receiver)[2]["results"]] == ["a3"]


def test_a_long_digest_counts_the_rest_and_leads_to_it(stores, clock, library, receiver):
    library.register(WebhookDraft(url=receiver.url, stream=None, digest={"every": "1 min"}))
    names = [f"a{number:03}" for number in range(MOST_LISTED + 7)]
    write(stores, names, clock.time_us)
    deliver(stores, clock)
    clock.forward(60)
    deliver(stores, clock)
    (digest,) = bodies(receiver)
    assert digest["counts"] == {"alert": MOST_LISTED + 7}
    assert (len(digest["results"]), digest["more"]) == (MOST_LISTED, 7)
    after = digest["next"].removeprefix("/v1/alerts?after=")
    assert [one["id"] for one in stores.alerts.page(after=after).items] == names[MOST_LISTED:]


def test_next_leads_to_every_alert_that_is_not_listed_whatever_their_ids(stores, clock, library, receiver):
    library.register(WebhookDraft(url=receiver.url, digest={"every": "1 min"}))
    names = [f"a{number:03}" for number in reversed(range(MOST_LISTED + 7))]
    write(stores, names, clock.time_us)
    row = sink_row(kind="correction", stream="s", id="x1", body=b'{"type":"correction","id":"x1","pattern":"high"}')
    stores.results["correction"].append([row], 1, stores.webhooks.all(), clock.time_us, {"high": "high"})
    deliver(stores, clock)
    clock.forward(60)
    deliver(stores, clock)
    (digest,) = bodies(receiver)
    listed = [one["id"] for one in digest["results"]]
    assert listed == names[:MOST_LISTED]
    after = digest["next"].removeprefix("/v1/alerts?after=")
    assert [one["id"] for one in stores.alerts.page(after=after).items] == names[MOST_LISTED:]


def test_a_damaged_alert_is_abandoned_and_delays_no_other_delivery(stores, clock, library, receiver, client):
    webhook = library.register(WebhookDraft(url=receiver.url, digest={"every": "1 s", "at_once": "high"}))
    write(stores, ["a1"], clock.time_us)
    (name,) = client.hkeys(BLOCKS_KEY)
    client.hset(BLOCKS_KEY, name, b"damaged")
    deliver(stores, clock)
    clock.forward(1)
    write(stores, ["a2"], clock.time_us)
    write(stores, ["h1"], clock.time_us, "high")
    deliver(stores, clock)
    h1, digest = sorted(bodies(receiver), key=lambda body: body["type"])
    assert (h1["id"], [one["id"] for one in digest["results"]]) == ("h1", ["a2"])
    health = library.health(webhook.id)
    assert (health.given_up, health.collected, health.stats.dead) == (1, 0, 1)


UNLISTABLE = ['{"id":"x1",', "[1]", "", '{"data":' + "[" * 252 + "]" * 252 + "}"]


@pytest.mark.parametrize("names", [[], ["a1", "a2"]])
@pytest.mark.parametrize("body", UNLISTABLE)
def test_a_result_that_cannot_be_listed_is_abandoned_and_the_digest_is_sent_without_it(
    stores, clock, library, receiver, client, body, names
):
    webhook = library.register(WebhookDraft(url=receiver.url, digest={"every": "1 min"}))
    write(stores, names, clock.time_us)
    row = sink_row(kind="correction", stream="s", id="x1", body=b'{"type":"correction","id":"x1","pattern":"high"}')
    stores.results["correction"].append([row], 1, stores.webhooks.all(), clock.time_us, {"high": "high"})
    deliver(stores, clock)
    name = f"{webhook.id}:+x1"
    record = orjson.loads(client.hget(RECORDS_KEY, name))
    client.hset(RECORDS_KEY, name, orjson.dumps({**record, "body": body}))
    clock.forward(60)
    with capture_logs() as logged:
        deliver(stores, clock)
    assert [[one["id"] for one in body["results"]] for body in bodies(receiver)] == [names] * bool(names)
    (line,) = [entry for entry in logged if entry["log_level"] in ("warning", "error")]
    assert line["event"] == "delivery-unreadable"
    assert f"the delivery {name}" in line["error"]
    health = library.health(webhook.id)
    assert (health.given_up, health.collected, health.stats.dead, health.stats.failed_attempts) == (1, 0, 1, 0)
    assert stores.deliveries.queued() == client.zcard(DIGESTS_KEY) == 0


@pytest.mark.parametrize("names", [["a1"], ["a1", "a2", "a3"]])
def test_a_damaged_record_is_abandoned_and_the_digest_is_sent_without_it(
    stores, clock, library, receiver, client, names
):
    webhook = library.register(WebhookDraft(url=receiver.url, digest={"every": "1 min"}))
    write(stores, names, clock.time_us)
    deliver(stores, clock)
    damaged = next(one.id for one in stores.deliveries.collected(webhook.id, 10, clock.time_us) if one.alert == "a1")
    assert client.hset(RECORDS_KEY, damaged, b"damaged") == 0
    clock.forward(60)
    with capture_logs() as logged:
        deliver(stores, clock)
    assert [[one["id"] for one in body["results"]] for body in bodies(receiver)] == [names[1:]] * (len(names) > 1)
    (line,) = [entry for entry in logged if entry["log_level"] == "warning"]
    assert line["event"] == "delivery-unreadable"
    assert f"the delivery {damaged}" in line["error"]
    health = library.health(webhook.id)
    assert (health.given_up, health.collected, health.stats.dead, health.stats.failed_attempts) == (1, 0, 1, 0)
    assert stores.deliveries.queued() == 0
    assert client.zcard(DIGESTS_KEY) == 0
    write(stores, ["a4"], clock.time_us)
    deliver(stores, clock)
    clock.forward(60)
    deliver(stores, clock)
    assert [one["id"] for one in bodies(receiver)[-1]["results"]] == ["a4"]


@pytest.fixture
def failing_digests(monkeypatch):
    def fail(*_):
        raise RuntimeError("a digest cannot be made")

    monkeypatch.setattr("service.delivery.digests._body", fail)


@pytest.mark.usefixtures("failing_digests")
def test_a_digest_that_cannot_be_made_delays_no_other_delivery(stores, clock, library, receiver):
    library.register(WebhookDraft(url=receiver.url, digest={"every": "1 s"}))
    library.register(WebhookDraft(url=receiver.url))
    write(stores, ["a1"], clock.time_us)
    clock.forward(1)
    with capture_logs() as logged:
        deliver(stores, clock)
        deliver(stores, clock)
    assert [entry["event"] for entry in logged if entry["log_level"] == "error"] == ["digest-failed"]
    assert receiver.ids() == ["a1"]


def test_every_attempt_has_the_same_bytes(stores, clock, library, receiver):
    library.register(WebhookDraft(url=receiver.url, digest={"every": "1 s"}))
    receiver.statuses = [500, 503]
    write(stores, ["a1"], clock.time_us)
    for _ in range(4):
        deliver(stores, clock)
        clock.forward(3600)
        write(stores, [f"b{clock.time_us}"], clock.time_us)
    by_id = defaultdict(set)
    for headers, body in receiver.received:
        by_id[headers["webhook-id"]].add(body)
    assert len(receiver.received) > len(by_id)
    assert all(len(some) == 1 for some in by_id.values())


def test_a_template_is_filled_from_a_digest(stores, clock, library, receiver):
    library.register(
        WebhookDraft(url=receiver.url, digest={"every": "1 s"}, template={"text": "{{counts.alert}} alerts"})
    )
    write(stores, ["a1", "a2"], clock.time_us)
    deliver(stores, clock)
    clock.forward(1)
    deliver(stores, clock)
    assert bodies(receiver) == [{"text": "2 alerts"}]


def test_what_is_collected_survives_a_change_and_goes_with_the_webhook(stores, clock, library, receiver):
    changed = library.register(WebhookDraft(url=receiver.url, digest={"every": "1 min"}))
    deleted = library.register(WebhookDraft(url=receiver.url, digest={"every": "1 min"}))
    write(stores, ["a1"], clock.time_us)
    deliver(stores, clock)
    library.change(changed.id, {"digest": None})
    stores.webhooks.delete(deleted.id)
    write(stores, ["a2"], clock.time_us)
    deliver(stores, clock)
    assert receiver.ids() == ["a2"]
    clock.forward(60)
    deliver(stores, clock)
    assert [[one["id"] for one in body["results"]] for body in bodies(receiver)[1:]] == [["a1"]]
    assert stores.deliveries.queued() == 0


@pytest.mark.parametrize("without", [False, True])
def test_a_shorter_interval_counts_from_the_next_result(stores, clock, library, receiver, without):
    webhook = library.register(WebhookDraft(url=receiver.url, digest={"every": "7 d"}))
    write(stores, ["a1"], clock.time_us)
    deliver(stores, clock)
    if without:
        library.change(webhook.id, {"digest": None})
    library.change(webhook.id, {"digest": {"every": "1 min"}})
    clock.forward(30)
    write(stores, ["a2"], clock.time_us)
    deliver(stores, clock)
    clock.forward(59)
    deliver(stores, clock)
    assert receiver.received == []
    clock.forward(1)
    deliver(stores, clock)
    assert [[one["id"] for one in body["results"]] for body in bodies(receiver)] == [["a1", "a2"]]


def test_a_longer_interval_counts_from_the_next_digest(stores, clock, library, receiver):
    webhook = library.register(WebhookDraft(url=receiver.url, digest={"every": "1 min"}))
    write(stores, ["a1"], clock.time_us)
    deliver(stores, clock)
    library.change(webhook.id, {"digest": {"every": "1 h"}})
    write(stores, ["a2"], clock.time_us)
    deliver(stores, clock)
    clock.forward(60)
    deliver(stores, clock)
    assert [[one["id"] for one in body["results"]] for body in bodies(receiver)] == [["a1", "a2"]]


@pytest.mark.usefixtures("failing_digests")
def test_new_results_do_not_hasten_a_digest_that_cannot_be_made(stores, clock, library):
    library.register(WebhookDraft(url="http://127.0.0.1:1/", digest={"every": "1 s"}))
    write(stores, ["a"], clock.time_us)
    with capture_logs() as logged:
        for second in range(5):
            deliver(stores, clock)
            clock.forward(1)
            write(stores, [f"a{second}"], clock.time_us)
    assert [entry["event"] for entry in logged if entry["log_level"] == "error"] == ["digest-failed"]


def test_a_result_that_is_found_while_the_digest_is_removed_waits_with_the_others(stores, clock, library, receiver):
    webhook = library.register(WebhookDraft(url=receiver.url, digest={"every": "10 min"}))
    write(stores, ["a1"], clock.time_us)
    deliver(stores, clock)
    write(stores, ["a2"], clock.time_us)
    library.change(webhook.id, {"digest": None})
    deliver(stores, clock)
    assert receiver.received == []
    clock.forward(600)
    deliver(stores, clock)
    assert [[one["id"] for one in body["results"]] for body in bodies(receiver)] == [["a1", "a2"]]


def test_a_digest_is_closed_by_one_of_several_processes(stores, clock, library):
    webhook = library.register(WebhookDraft(url="http://127.0.0.1:1/", digest={"every": "1 min"}))
    write(stores, ["a1", "a2"], clock.time_us)
    stores.deliveries.claim(clock.time_us, 1, 1)
    ids = [one.id for one in stores.deliveries.collected(webhook.id, 10, clock.time_us)]
    clock.forward(60)
    close_digest(stores, webhook.id, clock.time_us)
    assert not stores.deliveries.close_digest(webhook.id, ids, "another", "{}", clock.time_us)
    (claimed,) = stores.deliveries.claim(clock.time_us, 1, 10)
    assert (claimed.kind, len(orjson.loads(claimed.body)["results"])) == ("digest", 2)


@pytest.mark.parametrize("every", ["soon", "10 ms", "8 d"])
def test_a_time_that_cannot_be_is_refused(library, every):
    with pytest.raises(WebhookRefused, match="1 s to 7 d") as refused:
        library.register(WebhookDraft(url="http://127.0.0.1:1/", digest={"every": every}))
    assert refused.value.details["field"] == "digest"


def require_each_once(receiver, names):
    """Every alert is in one digest, and all messages of an id are equal."""
    by_id: dict[str, bytes] = {}
    for headers, body in receiver.received:
        assert by_id.setdefault(headers["webhook-id"], body) == body
    found = [one["id"] for body in by_id.values() for one in orjson.loads(body)["results"]]
    assert sorted(found) == sorted(names)


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_lost_or_doubled_where_calls_fail_before_or_after_their_effect(
    stores, clock, library, receiver, monkeypatch, seed
):
    chance = random.Random(seed)
    names: list[str] = []
    library.register(WebhookDraft(url=receiver.url, digest={"every": "2 s"}))
    for method in ("claim", "close_digest", "settle", "collected"):
        whole = getattr(stores.deliveries, method)

        def flaky(*args, whole=whole, **given):
            fate = chance.random()
            if fate < 0.15:
                raise StoreUnavailable("before")
            found = whole(*args, **given)
            if fate > 0.85:
                raise StoreUnavailable("after")
            return found

        monkeypatch.setattr(stores.deliveries, method, flaky)
    receiver.statuses = [chance.choice((200, 200, 500)) for _ in range(60)]
    worker = Deliverer(stores, settings_of(), clock, chance)
    monkeypatch.setattr("service.delivery.deliverer._OUTAGE_PAUSE_S", 0)
    for _ in range(60):
        new = [f"a{len(names) + number}" for number in range(chance.randrange(4))]
        names += new
        if new:
            write(stores, new, clock.time_us)
        asyncio.run(deliver_due(worker))
        clock.forward(chance.choice((0, 1, 3)))
    monkeypatch.undo()
    for _ in range(20):
        clock.forward(24 * 3600)
        deliver(stores, clock)
    assert stores.deliveries.queued() == 0
    require_each_once(receiver, names)


@pytest.mark.lengthy
def test_nothing_is_lost_or_doubled_where_deliverers_are_killed(stores, server_url, library, receiver, tmp_path):
    library.register(WebhookDraft(url=receiver.url, digest={"every": "1 s"}))
    environment = {
        "PATH": "",
        "FORESTALL_REDIS_URL": server_url,
        "FORESTALL_WEBHOOKS__ALLOW_PRIVATE_TARGETS": "true",
        "FORESTALL_WEBHOOKS__POLL_INTERVAL_S": "0.02",
        "FORESTALL_WEBHOOKS__TIMEOUT_S": "1",
        "FORESTALL_WEBHOOKS__LEASE_MARGIN_S": "1",
    }
    command, chance, kills = [sys.executable, "-m", "service.delivery.deliverer"], random.Random(3), 0
    names: list[str] = []
    process = None
    try:
        while kills < 5 or stores.deliveries.queued():
            if kills < 5 and stores.deliveries.queued() < MOST_LISTED:
                names.append(f"a{len(names)}")
                write(stores, names[-1:], time.time_ns() // 1_000)
            if process is None:
                process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, cwd=tmp_path)
                was = len(receiver.received)
            time.sleep(chance.uniform(0.02, 0.2))
            if kills < 5 and len(receiver.received) > was and chance.random() < 0.5:
                process.kill()
                process.wait()
                process, kills = None, kills + 1
    finally:
        if process is not None:
            process.kill()
            process.wait()
    require_each_once(receiver, names)
