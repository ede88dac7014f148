"""Webhooks take turns, have a bound each, and wait while their circuits are open."""

import orjson
import pytest

from service.errors import UnknownDelivery
from service.settings import WebhookSettings
from service.stores import Delivery, DeliveryOutcome, DeliveryStore, RegisteredWebhook
from service.stores.deliveries.delivery import DUE_KEY, RECORDS_KEY
from service.stores.records import encode
from tests.builders.service import sink_row

pytestmark = pytest.mark.redis

LEASE_US = 1_000
SETTINGS = WebhookSettings(
    target_concurrency=2, circuit_failures=3, circuit_pause_s=0.0001, log_kept=50, max_waiting=100_000
)


@pytest.fixture
def queue(client):
    return DeliveryStore(client, SETTINGS, given_up_kept=3)


def hook(stores, name, **changes):
    fields = {"url": "http://x", "secret": "whsec_", "stream": name, "pattern": None, "is_enabled": True, **changes}
    stores.webhooks.put(RegisteredWebhook(id=name, registered_us=0, **fields))


def write(stores, stream, count, start=0, now_us=0):
    bodies = [(f"{stream}{n}", {"id": f"{stream}{n}", "pattern": "p"}) for n in range(start, start + count)]
    rows = [sink_row(kind="alert", stream=stream, id=id_, body=orjson.dumps(body)) for id_, body in bodies]
    stores.alerts.append(rows, stores.webhooks.all(), now_us)


def fail(queue, delivery, now_us, next_us=None):
    verdict = DeliveryOutcome(verdict="retry", at_us=now_us, error="x", next_us=next_us or now_us)
    assert queue.settle(delivery, verdict)


def names(deliveries):
    return [delivery.alert for delivery in deliveries]


def open_circuit(queue, now_us):
    for _ in range(3):
        (delivery,) = queue.claim(now_us, LEASE_US, 1)
        fail(queue, delivery, now_us)


def test_a_target_with_a_hundred_thousand_due_deliveries_holds_nobody_up(client, stores, queue):
    hook(stores, "dead")
    hook(stores, "well")
    ids = [f"dead:d{number}" for number in range(100_000)]
    for start in range(0, len(ids), 10_000):
        part = ids[start : start + 10_000]
        client.zadd(DUE_KEY, dict.fromkeys(part, 0))
        record = encode(webhook="dead", alert="d", attempts=0, queued_us=0)
        client.hset(RECORDS_KEY, mapping=dict.fromkeys(part, record))
    claims = 0
    while client.zcard(DUE_KEY):
        queue.claim(1, LEASE_US, 1)
        claims += 1
    assert claims == 100  # a thousand new ones are taken in by each call
    write(stores, "well", 2, now_us=2)
    assert names(queue.claim(2, LEASE_US, 8)) == ["well0", "well1"]  # two of the dead target are on their way


def test_webhooks_are_served_in_turn(stores, queue):
    for name in ("a", "b", "c"):
        hook(stores, name)
        write(stores, name, 5)
    assert names(queue.claim(1, LEASE_US, 4)) == ["a0", "b0", "c0", "a1"]
    assert names(queue.claim(2, LEASE_US, 1)) == ["b1"]
    assert names(queue.claim(3, LEASE_US, 9)) == ["c1"]


def test_a_free_place_goes_to_who_has_waited_longest(stores, queue):
    for name in ("a", "b"):
        hook(stores, name)
        write(stores, name, 4)
    served = []
    for now_us in range(1, 9):
        (delivery,) = queue.claim(now_us, LEASE_US, 1)
        served.append(delivery.webhook)
        queue.settle(delivery, DeliveryOutcome(verdict="delivered", at_us=now_us, status=200))
    assert served == ["a", "b"] * 4


def test_one_webhook_has_so_many_attempts_on_their_way_and_no_more(stores, queue):
    hook(stores, "a")
    write(stores, "a", 3)
    first, second = queue.claim(1, LEASE_US, 9)
    assert queue.claim(2, LEASE_US, 9) == []
    queue.settle(first, DeliveryOutcome(verdict="delivered", at_us=3, status=200))
    assert names(queue.claim(3, LEASE_US, 9)) == ["a2"]
    assert queue.claim(1_000, LEASE_US, 9) == []
    assert names(queue.claim(1_001, LEASE_US, 9)) == [second.alert]  # its lease has run out


def test_deliveries_wait_while_the_circuit_is_open_and_one_tries(stores, queue):
    hook(stores, "a")
    write(stores, "a", 6)
    open_circuit(queue, 10)
    circuit = queue.circuit("a")
    assert (circuit.failures, circuit.since_us, circuit.until_us) == (3, 10, 110)
    assert queue.claim(109, LEASE_US, 9) == []
    (probe,) = queue.claim(110, LEASE_US, 9)
    assert queue.claim(111, LEASE_US, 9) == []
    fail(queue, probe, 120)
    assert queue.circuit("a").until_us == 220
    assert queue.claim(219, LEASE_US, 9) == []
    (probe,) = queue.claim(220, LEASE_US, 9)
    queue.settle(probe, DeliveryOutcome(verdict="delivered", at_us=230, status=200))
    assert queue.circuit("a").failures == 0
    assert len(queue.claim(230, LEASE_US, 9)) == 2
    assert queue.waiting("a") == 5


def test_waiting_is_no_attempt(stores, queue):
    hook(stores, "a")
    write(stores, "a", 9)
    open_circuit(queue, 10)
    assert sorted(row["attempt"] for row in stores.attempts("a").page(99).items) == [1, 1, 1]
    assert queue.waiting("a") == 9


def test_a_success_in_between_keeps_the_circuit_closed(stores, queue):
    hook(stores, "a")
    write(stores, "a", 9)
    for number in range(8):
        (delivery,) = queue.claim(number, LEASE_US, 1)
        if number % 3:
            fail(queue, delivery, number, next_us=500)
        else:
            queue.settle(delivery, DeliveryOutcome(verdict="delivered", at_us=number, status=200))
    assert queue.circuit("a").until_us is None


def test_a_disabled_webhook_keeps_what_waits(stores, queue):
    hook(stores, "a")
    write(stores, "a", 3)
    hook(stores, "a", is_enabled=False)
    assert queue.claim(5, LEASE_US, 9) == []
    assert queue.waiting("a") == 3
    hook(stores, "a")
    queue.wake("a", 6)
    assert names(queue.claim(6, LEASE_US, 9)) == ["a0", "a1"]


def test_an_attempt_that_ended_while_the_webhook_was_disabled_is_repeated(stores, queue):
    hook(stores, "a")
    write(stores, "a", 1)
    assert names(queue.claim(1, LEASE_US, 9)) == ["a0"]  # its deliverer dies
    hook(stores, "a", is_enabled=False)
    assert queue.claim(1_001, LEASE_US, 9) == []
    hook(stores, "a")
    queue.wake("a", 1_002)
    assert names(queue.claim(1_002, LEASE_US, 9)) == ["a0"]


def test_an_attempt_in_progress_when_the_webhook_is_enabled_keeps_its_lease(stores, queue):
    hook(stores, "a")
    write(stores, "a", 1)
    queue.claim(900, LEASE_US, 9)
    hook(stores, "a", is_enabled=False)
    queue.wake("a", 901)
    assert queue.claim(902, LEASE_US, 9) == []
    hook(stores, "a")
    queue.wake("a", 903)
    assert queue.claim(1_899, LEASE_US, 9) == []
    assert names(queue.claim(1_900, LEASE_US, 9)) == ["a0"]


def test_what_is_queued_for_a_deleted_webhook_is_dropped(stores, queue):
    hook(stores, "a")
    write(stores, "a", 3)
    (delivery,) = queue.claim(1, LEASE_US, 1)
    stores.webhooks.delete("a")
    assert queue.claim(2, LEASE_US, 9) == []
    assert not queue.settle(delivery, DeliveryOutcome(verdict="delivered", at_us=4, status=200))
    assert queue.queued() == 0


def test_what_waits_for_a_webhook_that_was_disabled_first_is_dropped_too(stores, queue):
    hook(stores, "a")
    write(stores, "a", 3)
    hook(stores, "a", is_enabled=False)
    assert queue.claim(1, LEASE_US, 9) == []
    stores.webhooks.delete("a")
    assert queue.claim(2, LEASE_US, 9) == []
    assert (queue.queued(), queue.waiting("a")) == (0, 0)


def test_more_than_may_wait_is_given_up_and_kept(client, stores):
    queue = DeliveryStore(client, WebhookSettings(max_waiting=2), given_up_kept=3)
    hook(stores, "a")
    write(stores, "a", 7)
    assert len(queue.claim(1, LEASE_US, 9)) == 2
    assert names(stores.deliveries.given_up("a", 0, 9)) == ["a4", "a5", "a6"]
    stats = stores.webhooks.stats("a")
    assert (stats.dead, stats.last_error) == (5, "too many deliveries wait for this webhook")


def test_only_the_latest_given_up_are_kept(stores, queue):
    hook(stores, "a")
    write(stores, "a", 5)
    for number in range(5):
        (delivery,) = queue.claim(number, LEASE_US, 1)
        queue.settle(delivery, DeliveryOutcome(verdict="dead", at_us=number, error="x"))
        queue.wake("a", number)
    assert names(stores.deliveries.given_up("a", 0, 9)) == ["a2", "a3", "a4"]


def test_deliveries_of_an_earlier_release_are_taken(client, stores, queue):
    hook(stores, "a")
    body = '{"type":"deviation","id":"x"}'
    client.hset(RECORDS_KEY, "a:x", encode(webhook="a", alert="x", attempts=4, queued_us=1, body=body))
    client.zadd(DUE_KEY, {"a:x": 7})
    (delivery,) = queue.claim(7, LEASE_US, 9)
    assert delivery == Delivery(
        id="a:x", webhook="a", alert="x", kind="deviation", attempts=4, queued_us=1, lease_us=1_007, body=body
    )


def test_what_ended_can_be_sent_again_with_its_body(stores, queue):
    hook(stores, "a")
    body = orjson.dumps({"type": "correction", "id": "c", "pattern": "p"})
    stores.results["correction"].append(
        [sink_row(kind="correction", stream="a", id="c", body=body)], 1, stores.webhooks.all()
    )
    (delivery,) = queue.claim(1, LEASE_US, 1)
    queue.settle(delivery, DeliveryOutcome(verdict="delivered", at_us=2, status=200))
    found = stores.deliveries.delivery("a", delivery.id)
    assert (found.kind, found.body) == ("correction", body.decode())
    assert queue.send_again("a", [found], 3) == 1
    (again,) = queue.claim(3, LEASE_US, 1)
    assert (again.id, again.body, again.attempts) == ("a:c", body.decode(), 0)
    assert queue.send_again("a", [found], 4) == 0  # it is on its way
    with pytest.raises(UnknownDelivery, match="'a:nothing'"):
        stores.deliveries.delivery("a", "a:nothing")


@pytest.mark.parametrize("is_disabled", [False, True])
def test_a_delivery_whose_lease_has_run_out_can_be_sent_again(stores, queue, is_disabled):
    hook(stores, "a")
    write(stores, "a", 1)
    (delivery,) = queue.claim(1, LEASE_US, 1)
    if is_disabled:
        hook(stores, "a", is_enabled=False)
        assert queue.claim(1_001, LEASE_US, 9) == []
    hook(stores, "a")
    assert queue.send_again("a", [delivery], 1_000) == 0
    assert queue.send_again("a", [delivery], 1_001) == 1
    (again,) = queue.claim(1_002, LEASE_US, 1)
    assert (again.id, queue.waiting("a")) == (delivery.id, 1)


def test_a_delivery_of_another_webhook_is_none_of_this_one(stores, queue):
    for name in ("a", "b"):
        hook(stores, name, stream=None)
    write(stores, "s", 1)
    with pytest.raises(UnknownDelivery):
        stores.deliveries.delivery("a", "b:s0")


def test_what_waits_is_due_at_once_and_without_failures_when_it_is_sent_again(stores, queue):
    hook(stores, "a")
    write(stores, "a", 1)
    (delivery,) = queue.claim(1, LEASE_US, 1)
    fail(queue, delivery, 2, next_us=900)
    assert queue.claim(3, LEASE_US, 1) == []
    queue.send_again("a", [stores.deliveries.delivery("a", delivery.id)], 4)
    (again,) = queue.claim(4, LEASE_US, 1)
    assert (again.attempts, again.queued_us) == (0, delivery.queued_us)
