"""Alerts on their way to a real receiver, which fails some of the time."""

import asyncio
import random
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson
import pytest
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError
from structlog.testing import capture_logs

from service import Stores, WebhookDraft, WebhookLibrary
from service.delivery.attempts import pause_asked_for
from service.delivery.deliverer import Deliverer, pause_s
from service.settings import WebhookSettings
from service.stores import Attempt, connect
from service.stores.deliveries.delivery import RECORDS_KEY
from tests.builders.delivering import deliver_due
from tests.builders.service import answering, receiving, sink_row

pytestmark = pytest.mark.redis

BEYOND_ANY_DATE = (f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT", f"Mon, 01 Jan 2024 00:00:00 +{'9' * 20}")


@pytest.fixture
def receiver():
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def clock(clock):
    clock.time_us = time.time_ns() // 1_000  # receivers refuse what is older than minutes
    return clock


@pytest.fixture
def register(stores, settings, clock):
    def register(url, **wanted):
        return WebhookLibrary(stores, settings, clock).register(WebhookDraft(url=url, **wanted))

    return register


def deliverer(stores, clock, **changes):
    fields = {"allow_private_targets": True, "timeout_s": 5.0, "attempts": 3, "poll_interval_s": 0.01, **changes}
    return Deliverer(stores, WebhookSettings(**fields), clock, random.Random(7))


def write_alerts(stores, count, now_us=0):
    bodies = [orjson.dumps({"id": f"a{n}", "stream": "s", "pattern": "p", "why": "ü"}) for n in range(count)]
    rows = [sink_row(kind="alert", stream="s", id=f"a{n}", body=body) for n, body in enumerate(bodies)]
    stores.alerts.append(rows, stores.webhooks.all(), now_us)


def nested(value, levels):
    return value if not levels else {"in": nested(value, levels - 1)}


def run_rounds(stores, clock, rounds, **changes):
    worker = deliverer(stores, clock, **changes)
    made = []
    for _ in range(rounds):
        made.append(asyncio.run(deliver_due(worker)))
        clock.forward(10 * 3600)
    return made


def attempts_of(stores, webhook_id, limit):
    """The latest attempts, the newest first."""
    return [Attempt(**record) for record in stores.attempts(webhook_id).page(limit).items]


def test_an_alert_arrives_signed(stores, clock, register, receiver):
    webhook = register(receiver.url)
    write_alerts(stores, 1)
    assert run_rounds(stores, clock, 2) == [1, 0]
    ((headers, body),) = receiver.received
    assert Webhook(webhook.secret).verify(body, headers) == orjson.loads(body)
    assert {"id": "a0", "stream": "s", "pattern": "p", "why": "ü"}.items() <= orjson.loads(body).items()
    assert body == stores.alerts.body("a0")
    assert headers["webhook-id"] == "a0"
    assert stores.webhooks.stats(webhook.id).delivered == 1
    assert stores.latencies.read("delivery").cumulative[-1] == 1


def test_a_correction_arrives_signed_under_its_own_id(stores, clock, register, receiver):
    webhook = register(receiver.url)
    row = sink_row(
        kind="correction", stream="s", id="c0", body=orjson.dumps({"id": "c0", "pattern": "p", "alert": "ü"})
    )
    stores.results["correction"].append([row], 1, stores.webhooks.all())
    receiver.statuses = [500]
    assert run_rounds(stores, clock, 3) == [1, 1, 0]
    (headers, body), (_, repeated) = receiver.received
    assert Webhook(webhook.secret).verify(body, headers) == {"id": "c0", "pattern": "p", "alert": "ü"}
    assert receiver.ids() == ["c0", "c0"]
    assert repeated == body


def test_a_failed_attempt_is_repeated_with_the_same_id(stores, clock, register, receiver):
    webhook = register(receiver.url)
    receiver.statuses = [500, 302]
    write_alerts(stores, 1)
    assert run_rounds(stores, clock, 4) == [1, 1, 1, 0]
    assert receiver.ids() == ["a0", "a0", "a0"]
    assert len({body for _, body in receiver.received}) == 1
    stats = stores.webhooks.stats(webhook.id)
    assert (stats.delivered, stats.failed_attempts, stats.dead) == (1, 2, 0)


def test_a_receiver_that_asks_for_a_pause_gets_nothing_before_its_end(stores, clock, register, receiver):
    webhook = register(receiver.url)
    receiver.statuses, receiver.retry_after = [429], "120"
    worker = deliverer(stores, clock, attempts=12)
    write_alerts(stores, 1)
    assert asyncio.run(deliver_due(worker)) == 1
    stores.alerts.append([sink_row(kind="alert", stream="s", id="b", body=b'{"id":"b"}')], stores.webhooks.all(), 0)
    began_us = clock.time_us
    clock.forward(119)
    assert asyncio.run(deliver_due(worker)) == 0
    assert stores.deliveries.circuit(webhook.id).until_us == began_us + 120_000_000
    clock.forward(1)
    assert asyncio.run(deliver_due(worker)) == 2
    assert sorted(receiver.ids()) == ["a0", "a0", "b"]
    assert stores.deliveries.circuit(webhook.id).until_us is None


@pytest.mark.parametrize(
    ("text", "pause"),
    [
        ("120", 120.0),
        ("Thu, 01 Jan 1970 00:01:10 GMT", 60.0),
        ("Thu, 01 Jan 1970 00:00:05 GMT", 0.0),
        ("9" * 400, float("9" * 12)),
        *((text, None) for text in ("", "-5", "soon", "1.5", "Thu, 01 Jan", "\u0661", *BEYOND_ANY_DATE)),
    ],
)
def test_a_pause_is_a_number_of_seconds_or_a_date(text, pause):
    assert pause_asked_for(text, 10_000_000) == pause


def test_a_pause_that_is_asked_for_is_bounded(stores, clock, register, receiver):
    register(receiver.url)
    receiver.statuses, receiver.retry_after = [503], "999999999"
    write_alerts(stores, 1)
    worker = deliverer(stores, clock, max_delay_s=600)
    assert asyncio.run(deliver_due(worker)) == 1
    clock.forward(600)
    assert asyncio.run(deliver_due(worker)) == 1


@pytest.mark.parametrize("retry_after", BEYOND_ANY_DATE)
def test_a_pause_beyond_any_date_is_a_failed_attempt(stores, clock, register, receiver, retry_after):
    with receiving() as busy:
        webhook = register(busy.url)
        busy.statuses, busy.retry_after = [503], retry_after
        register(receiver.url)
        write_alerts(stores, 1)
        assert run_rounds(stores, clock, 2) == [2, 1]
    assert [attempt.error for attempt in attempts_of(stores, webhook.id, 9)] == [None, "the receiver answered 503"]
    assert receiver.ids() == ["a0"]


def test_a_body_that_cannot_be_made_is_a_failed_attempt(stores, clock, register, receiver):
    webhook = register(receiver.url, template=nested("{{why}}", 10))
    register(receiver.url)
    body = orjson.dumps({"id": "deep", "why": nested(1, 250)})
    stores.alerts.append([sink_row(kind="alert", stream="s", id="deep", body=body)], stores.webhooks.all(), 0)
    with capture_logs() as logged:
        assert run_rounds(stores, clock, 4) == [2, 1, 1, 0]
    stats = stores.webhooks.stats(webhook.id)
    assert (stats.failed_attempts, stats.dead) == (3, 1)
    assert stats.last_error == "TypeError: Recursion limit reached"
    assert [entry["webhook"] for entry in logged if entry["event"] == "delivery-failed"] == [webhook.id] * 3
    assert receiver.ids() == ["deep"]


def test_an_outcome_that_cannot_be_stored_stops_no_other_delivery(stores, clock, register, receiver):
    class BrokenJitter(random.Random):
        def uniform(self, a, b):
            raise ValueError("no pause")

    unreachable = register("http://127.0.0.1:1/")
    register(receiver.url)
    write_alerts(stores, 1)
    worker = Deliverer(stores, WebhookSettings(allow_private_targets=True), clock, BrokenJitter())
    with capture_logs() as logged:
        assert asyncio.run(deliver_due(worker)) == 2
    assert receiver.ids() == ["a0"]
    unsettled = [(entry["webhook"], entry["alert"]) for entry in logged if entry["event"] == "delivery-unsettled"]
    assert unsettled == [(unreachable.id, "a0")]
    assert run_rounds(stores, clock, 1) == [0]
    assert run_rounds(stores, clock, 1) == [1], "due again when the lease has expired"
    assert stores.webhooks.stats(unreachable.id).failed_attempts == 1


def test_redirects_are_not_followed(stores, clock, register, receiver):
    register(receiver.url)
    receiver.statuses = [307]
    write_alerts(stores, 1)
    run_rounds(stores, clock, 1)
    assert len(receiver.received) == 1
    assert stores.deliveries.queued() == 1


def test_a_delivery_is_given_up_when_the_schedule_is_exhausted(stores, clock, register, receiver):
    webhook = register(receiver.url)
    receiver.statuses = [500] * 9
    write_alerts(stores, 1)
    assert run_rounds(stores, clock, 5) == [1, 1, 1, 0, 0]
    (dead,) = stores.deliveries.given_up(webhook.id, 0, 9)
    assert (dead.alert, dead.attempts) == ("a0", 3)
    last = attempts_of(stores, webhook.id, 1)[0]
    assert (last.verdict, last.attempt, last.status, last.next_us) == ("dead", 3, 500, None)
    stats = stores.webhooks.stats(webhook.id)
    assert (stats.failed_attempts, stats.dead) == (3, 1)


def test_a_redirect_says_so(stores, clock, register, receiver):
    webhook = register(receiver.url)
    receiver.statuses = [302]
    write_alerts(stores, 1)
    run_rounds(stores, clock, 1)
    assert "302, a redirect; they are not followed" in stores.webhooks.stats(webhook.id).last_error


def test_an_unreachable_webhook_does_not_hold_up_the_others(stores, clock, register, receiver):
    nobody = register("http://127.0.0.1:1/")
    register(receiver.url)
    write_alerts(stores, 5)
    assert run_rounds(stores, clock, 1) == [10]
    assert sorted(receiver.ids()) == [f"a{n}" for n in range(5)]
    assert "ConnectError" in stores.webhooks.stats(nobody.id).last_error
    assert stores.deliveries.queued() == 5


def test_a_receiver_that_is_gone_gets_nothing_more_until_it_is_enabled(stores, settings, clock, register, receiver):
    webhook = register(receiver.url)
    receiver.statuses = [410]
    write_alerts(stores, 1)
    run_rounds(stores, clock, 1)
    gone = stores.webhooks.get(webhook.id)
    assert (gone.is_enabled, gone.disabled_because) == (False, "the receiver answered 410 Gone")
    rows = [sink_row(kind="alert", stream="s", id="later", body=orjson.dumps({"id": "later", "pattern": "p"}))]
    stores.alerts.append(rows, stores.webhooks.all(), clock.now_us())
    assert run_rounds(stores, clock, 2) == [0, 0]
    WebhookLibrary(stores, settings, clock).change(webhook.id, {"is_enabled": True})
    assert run_rounds(stores, clock, 2) == [1, 0]
    assert receiver.ids() == ["a0", "a0"]


def test_a_webhook_that_gets_another_url_during_the_attempt_is_not_disabled(
    stores, settings, clock, register, receiver, monkeypatch
):
    webhook = register(receiver.url)
    library = WebhookLibrary(stores, settings, clock)
    receiver.statuses = [410]
    write_alerts(stores, 1)
    worker = deliverer(stores, clock)
    send = worker._send

    async def late(*arguments):
        reply = await send(*arguments)
        library.change(webhook.id, {"url": receiver.url + "/new"})
        return reply

    monkeypatch.setattr(worker, "_send", late)
    asyncio.run(deliver_due(worker))
    changed = stores.webhooks.get(webhook.id)
    assert (changed.url, changed.is_enabled, changed.disabled_because) == (receiver.url + "/new", True, None)


def test_a_webhook_that_is_gone_may_be_deleted_during_the_attempt(stores, clock, register):
    class Gone(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            stores.webhooks.delete(webhook.id)
            self.send_response(410)
            self.end_headers()

    with answering(Gone) as url, capture_logs() as logged:
        webhook = register(url)
        write_alerts(stores, 1)
        assert run_rounds(stores, clock, 2) == [1, 0]
    assert [entry["event"] for entry in logged] == ["delivery-settled"]
    assert stores.deliveries.queued() == 0


def test_what_is_queued_for_a_deleted_webhook_is_dropped(stores, clock, register, receiver):
    deleted = register(receiver.url)
    write_alerts(stores, 3)
    stores.webhooks.delete(deleted.id)
    assert run_rounds(stores, clock, 1) == [0]
    assert receiver.received == []
    assert stores.deliveries.queued() == 0


def test_nothing_but_failures_for_days_disables_a_webhook(stores, settings, clock, register, receiver):
    webhook = register(receiver.url)
    receiver.statuses = [500, 200, 500, 500, 500]
    write_alerts(stores, 1)
    assert run_rounds(stores, clock, 2, attempts=99, disable_after_s=5 * 3600) == [1, 1]  # ten hours between two rounds
    assert stores.webhooks.get(webhook.id).is_enabled
    write_alerts(stores, 2)
    assert run_rounds(stores, clock, 2, attempts=99, disable_after_s=15 * 3600) == [1, 1]
    assert stores.webhooks.get(webhook.id).is_enabled
    run_rounds(stores, clock, 1, attempts=99, disable_after_s=15 * 3600)
    found = stores.webhooks.get(webhook.id)
    assert not found.is_enabled
    assert found.disabled_because.startswith("nothing but failures since 20")


def test_a_slow_receiver_is_cut_off(stores, clock, register):
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as silent:
        webhook = register(f"http://127.0.0.1:{silent.server_port}/")
        write_alerts(stores, 1)
        run_rounds(stores, clock, 1, timeout_s=0.1)
    assert "no answer within 0.1 s" in stores.webhooks.stats(webhook.id).last_error


def test_a_private_target_is_refused_at_delivery_too(stores, clock, register, receiver):
    webhook = register(receiver.url)
    write_alerts(stores, 1)
    run_rounds(stores, clock, 1, allow_private_targets=False)
    assert receiver.received == []
    assert "private" in stores.webhooks.stats(webhook.id).last_error


def test_a_delivery_whose_worker_died_comes_again(stores, clock, register, receiver):
    register(receiver.url)
    write_alerts(stores, 1)
    assert len(stores.deliveries.claim(clock.now_us(), 40_000_000, 1)) == 1
    worker = deliverer(stores, clock)
    assert asyncio.run(deliver_due(worker)) == 0
    clock.forward(41)
    assert asyncio.run(deliver_due(worker)) == 1
    assert receiver.ids() == ["a0"]


def test_everything_arrives_through_a_receiver_that_fails_half_of_the_time(stores, clock, register, receiver):
    webhook = register(receiver.url)
    chance = random.Random(3)
    receiver.statuses = [chance.choice([200, 503]) for _ in range(60)]
    write_alerts(stores, 40)
    for _ in range(30):
        if stores.deliveries.queued():
            run_rounds(stores, clock, 1, attempts=20, concurrency=40)
    assert set(receiver.ids()) == {f"a{n}" for n in range(40)}
    assert stores.deliveries.queued() == 0
    assert stores.deliveries.count_given_up(webhook.id) == 0


def test_the_loop_runs_until_it_is_told_to_stop(stores, clock, register, receiver):
    register(receiver.url)
    write_alerts(stores, 50)

    rounds: list[int] = []

    async def run():
        stop = asyncio.Event()
        loop = asyncio.create_task(deliverer(stores, clock, concurrency=4).run(stop, lambda: rounds.append(1)))
        await asyncio.to_thread(receiver.wait_for, 50)
        stop.set()
        await asyncio.wait_for(loop, 300)

    asyncio.run(run())
    assert sorted(receiver.ids()) == sorted(f"a{n}" for n in range(50))
    assert stores.deliveries.queued() == 0
    assert len(rounds) > 50 / 4, "a sign of life in every round"


def test_an_outage_of_redis_is_waited_out(settings, clock, monkeypatch):
    monkeypatch.setattr("service.delivery.deliverer._OUTAGE_PAUSE_S", 0)
    url = "redis://127.0.0.1:1/0"
    with connect(url, retries=0) as client:
        assert asyncio.run(deliver_due(deliverer(Stores(client, url, settings), clock))) == 0


def test_headers_and_template_of_a_webhook_are_sent_and_signed(stores, clock, register, receiver):
    template = {"text": "{{pattern}}: {{why}}", "raw": "{{version}}"}
    webhook = register(receiver.url, headers={"Authorization": "Bearer x"}, template=template)
    write_alerts(stores, 1)
    run_rounds(stores, clock, 1)
    ((headers, body),) = receiver.received
    assert Webhook(webhook.secret).verify(body, headers) == {"text": "p: ü", "raw": None}
    assert headers["authorization"] == "Bearer x"


def test_a_rotated_secret_signs_beside_the_new_one_for_a_while(stores, settings, clock, register, receiver):
    webhook = register(receiver.url)
    fresh = WebhookLibrary(stores, settings, clock).rotate_secret(webhook.id, secret=None, grace_s=60)
    write_alerts(stores, 2)
    worker = deliverer(stores, clock, concurrency=1)
    asyncio.run(deliver_due(worker))
    clock.forward(61)
    asyncio.run(deliver_due(worker))
    during, after = receiver.received
    assert len(during[0]["webhook-signature"].split(" ")) == 2
    for secret in (webhook.secret, fresh.secret):
        Webhook(secret).verify(during[1], during[0])
    Webhook(fresh.secret).verify(after[1], after[0])
    with pytest.raises(WebhookVerificationError):
        Webhook(webhook.secret).verify(after[1], after[0])


def test_every_attempt_is_listed_newest_first(stores, clock, register, receiver):
    webhook = register(receiver.url)
    receiver.statuses = [500, 503]
    write_alerts(stores, 1)
    run_rounds(stores, clock, 3)
    *latest, first = attempts_of(stores, webhook.id, 9)
    assert [(found.attempt, found.verdict, found.status) for found in latest] == [
        (3, "delivered", 200),
        (2, "retry", 503),
    ]
    assert (first.delivery, first.kind, first.item) == (f"{webhook.id}:a0", "alert", "a0")
    assert (first.error, first.attempt) == ("the receiver answered 500", 1)
    assert first.next_us > first.at_us


def test_pauses_grow_and_are_spread():
    settings = WebhookSettings(first_delay_s=5, delay_factor=3, max_delay_s=100)
    chance = random.Random(1)
    for attempts, longest in [(1, 5), (2, 15), (3, 45), (4, 100), (50, 100)]:
        pauses = [pause_s(settings, attempts, chance) for _ in range(300)]
        assert 0 <= min(pauses) < 0.1 * longest
        assert 0.9 * longest < max(pauses) <= longest


@pytest.mark.parametrize(("factor", "attempts"), [(3, 648), (3, 1_000_000), (100, 156), (1, 1_000_000)])
def test_a_pause_is_bounded_after_any_number_of_attempts(factor, attempts):
    settings = WebhookSettings(first_delay_s=100, delay_factor=factor, max_delay_s=100)
    pauses = [pause_s(settings, attempts, random.Random(1)) for _ in range(9)]
    assert 0 <= min(pauses) <= max(pauses) <= 100


def test_the_process_finishes_on_sigterm(stores, server_url, register, receiver, tmp_path):
    register(receiver.url)
    write_alerts(stores, 3)
    environment = {
        "PATH": "",
        "FORESTALL_REDIS_URL": server_url,
        "FORESTALL_WEBHOOKS__ALLOW_PRIVATE_TARGETS": "true",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "service.delivery.deliverer"], env=environment, stderr=subprocess.PIPE, cwd=tmp_path
    )
    try:
        receiver.wait_for(3)
        process.send_signal(signal.SIGTERM)
        _, logged = process.communicate(timeout=240)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    events = [orjson.loads(line)["event"] for line in logged.splitlines()]
    assert events[0] == "deliverer-started"
    assert events.count("delivery-settled") == 3
    assert events[-1] == "process-stopped"
    assert stores.deliveries.queued() == 0


DAMAGED = [
    b'{"format":1,"web',
    b'{"format":2,"webhook":"w"}',
    b'{"format":1,"webhook":"w","alert":"a0","queued_us":0}',
    b'{"format":1,"webhook":"w","alert":"a0","queued_us":0,"attempts":"x"}',
    b'{"format":1,"webhook":"w","alert":"a0","queued_us":0,"attempts":0,"kind":"correction","body":{}}',
    b'{"format":1,"webhook":"w","alert":"a0","queued_us":0,"attempts":0,"body":"{"}',
    b'{"format":1,"webhook":"w","alert":"a0","queued_us":0,"attempts":0,"body":"[]"}',
]


@pytest.mark.parametrize("record", DAMAGED)
def test_a_damaged_record_is_abandoned_and_delays_no_other_delivery(
    stores, settings, clock, client, register, receiver, record
):
    webhook, other = register(receiver.url), register(receiver.url)
    write_alerts(stores, 2)
    damaged = f"{webhook.id}:a0"
    assert client.hset(RECORDS_KEY, damaged, record) == 0
    with capture_logs() as logged:
        assert run_rounds(stores, clock, 2) == [3, 0]
    assert sorted(receiver.ids()) == ["a0", "a1", "a1"]
    (line,) = [entry for entry in logged if entry["log_level"] == "warning"]
    assert line["event"] == "delivery-unreadable"
    assert f"the delivery {damaged}" in line["error"]
    library = WebhookLibrary(stores, settings, clock)
    health = library.health(webhook.id)
    assert (health.stats.dead, health.stats.failed_attempts, health.circuit.failures) == (1, 0, 0)
    assert (health.given_up, health.waiting, stores.deliveries.queued()) == (1, 0, 0)
    assert stores.webhooks.stats(other.id).dead == 0
    again = library.send_given_up_again(webhook.id, since_us=0, limit=1)
    assert (again.queued, again.remaining) == (0, 0)


def test_a_damaged_record_does_not_hide_deliveries_that_can_be_sent_again(
    stores, settings, clock, client, register, receiver
):
    webhook = register(receiver.url)
    write_alerts(stores, 1)
    client.hset(RECORDS_KEY, f"{webhook.id}:a0", b"damaged")
    run_rounds(stores, clock, 1)
    write_alerts(stores, 2)
    receiver.statuses = [500]
    assert run_rounds(stores, clock, 1, attempts=1) == [1]
    library = WebhookLibrary(stores, settings, clock)
    assert library.send_given_up_again(webhook.id, since_us=0, limit=1).queued == 1
    assert run_rounds(stores, clock, 1) == [1]
    assert receiver.ids() == ["a1", "a1"]
