from dataclasses import asdict, replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import UnknownWebhook
from service.stores import DeliveryOutcome, RegisteredWebhook
from service.stores.deliveries.webhooks import WEBHOOKS_KEY, WEBHOOKS_READ_KEY, Webhooks, WebhookStore
from tests.builders.service import sink_row

pytestmark = pytest.mark.redis

LEASE_US = 100


@pytest.fixture
def webhook(stores):
    webhook = RegisteredWebhook(
        id="w", url="http://x", secret="whsec_", stream=None, pattern=None, is_enabled=True, registered_us=0
    )
    stores.webhooks.put(webhook)
    return webhook


@pytest.fixture
def queue(stores, webhook):
    rows = [
        sink_row(kind="alert", stream="s", id=f"a{n}", body=orjson.dumps({"id": f"a{n}", "pattern": "p"}))
        for n in range(3)
    ]
    for number, row in enumerate(rows):
        stores.alerts.append([row], [webhook], number)
    return stores.deliveries


def alerts_of(deliveries):
    return [delivery.alert for delivery in deliveries]


def test_only_what_is_due_is_claimed_and_the_oldest_first(queue):
    assert alerts_of(queue.claim(1, LEASE_US, 9)) == ["a0", "a1"]
    assert alerts_of(queue.claim(5, LEASE_US, 1)) == ["a2"]


def test_a_claimed_delivery_is_nobody_elses_until_the_lease_ends(queue):
    (first, *_) = queue.claim(9, LEASE_US, 9)
    assert first.lease_us == 109
    assert queue.claim(108, LEASE_US, 9) == []
    assert alerts_of(queue.claim(109, LEASE_US, 9)) == ["a0", "a1", "a2"]


def test_a_delivered_alert_leaves_the_queue(queue, stores):
    (delivery,) = queue.claim(0, LEASE_US, 1)
    assert queue.settle(delivery, DeliveryOutcome(verdict="delivered", at_us=7, status=204))
    assert queue.queued() == 2
    stats = stores.webhooks.stats("w")
    assert (stats.delivered, stats.failed_attempts, stats.last_status, stats.last_error) == (1, 0, 204, None)
    assert stats.last_attempt_us == 7


def test_a_failed_attempt_comes_again_when_it_is_due(queue, stores):
    (delivery,) = queue.claim(0, LEASE_US, 1)
    queue.settle(delivery, DeliveryOutcome(verdict="retry", at_us=1, error="no answer", next_us=500))
    queue.claim(99, LEASE_US, 9)
    (again,) = [found for found in queue.claim(500, LEASE_US, 9) if found.alert == "a0"]
    assert (again.attempts, again.queued_us) == (1, 0)
    stats = stores.webhooks.stats("w")
    assert (stats.failed_attempts, stats.last_status, stats.last_error) == (1, None, "no answer")


def test_a_dead_delivery_is_kept_to_be_sent_again(queue, stores):
    (delivery,) = queue.claim(0, LEASE_US, 1)
    queue.settle(delivery, DeliveryOutcome(verdict="dead", at_us=3, status=500, error="the receiver answered 500"))
    assert queue.queued() == 2
    assert alerts_of(stores.deliveries.given_up("w", 3, 9)) == ["a0"]
    assert stores.deliveries.given_up("w", 4, 9) == []
    assert stores.webhooks.stats("w").dead == 1
    assert queue.send_again("w", stores.deliveries.given_up("w", 0, 9), 4) == 1
    assert stores.deliveries.count_given_up("w") == 0
    again = next(found for found in queue.claim(4, LEASE_US, 9) if found.alert == "a0")
    assert (again.attempts, again.queued_us) == (0, 0)


def test_the_outcome_of_a_lost_lease_does_not_count(queue, stores):
    (late,) = queue.claim(0, LEASE_US, 1)
    queue.claim(100, LEASE_US, 9)
    assert not queue.settle(late, DeliveryOutcome(verdict="retry", at_us=101, error="x", next_us=102))
    assert not queue.settle(late, DeliveryOutcome(verdict="dead", at_us=101, error="x"))
    assert queue.claim(150, LEASE_US, 9) == []
    assert stores.webhooks.stats("w").failed_attempts == 0


def test_success_counts_even_after_the_lease_and_once(queue, stores):
    (late,) = queue.claim(0, LEASE_US, 1)
    (current,) = [found for found in queue.claim(100, LEASE_US, 9) if found.id == late.id]
    assert queue.settle(late, DeliveryOutcome(verdict="delivered", at_us=101, status=200))
    assert not queue.settle(current, DeliveryOutcome(verdict="delivered", at_us=102, status=200))
    assert queue.queued() == 2
    assert stores.webhooks.stats("w").delivered == 1


def test_a_dropped_delivery_leaves_no_trace(queue, stores):
    (delivery,) = queue.claim(0, LEASE_US, 1)
    queue.settle(delivery, DeliveryOutcome(verdict="dropped", at_us=1))
    assert queue.queued() == 2
    assert stores.webhooks.stats("w").last_attempt_us is None


def test_a_deleted_webhook_has_no_statistics(queue, stores):
    (delivery,) = queue.claim(0, LEASE_US, 1)
    stores.webhooks.delete("w")
    queue.settle(delivery, DeliveryOutcome(verdict="delivered", at_us=1, status=200))
    assert stores.webhooks.stats("w").delivered == 0
    with pytest.raises(UnknownWebhook, match="'w'"):
        stores.webhooks.delete("w")


def test_a_webhook_is_changed_as_it_is_found(stores, webhook):
    stores.webhooks.change("w", lambda found: replace(found, is_enabled=False))
    assert [found.is_enabled for found in stores.webhooks.all()] == [False]
    stores.webhooks.delete("w")
    with pytest.raises(UnknownWebhook):
        stores.webhooks.change("w", lambda found: found)


def test_who_comes_first_wins_and_the_other_looks_again(stores, webhook):
    def change(found):
        if not found.description:
            stores.webhooks.put(replace(found, description="another", url="http://y"))
        return replace(found, description=found.description + " and mine")

    assert stores.webhooks.change("w", change) == stores.webhooks.get("w")
    assert (stores.webhooks.get("w").description, stores.webhooks.get("w").url) == ("another and mine", "http://y")


def test_a_correction_carries_its_body_from_attempt_to_attempt(stores, webhook):
    row = sink_row(kind="correction", stream="s", id="c", body=orjson.dumps({"id": "c", "pattern": "p"}))
    stores.results["correction"].append([row], 1, [webhook], 0)
    (delivery,) = stores.deliveries.claim(0, LEASE_US, 1)
    stores.deliveries.settle(delivery, DeliveryOutcome(verdict="retry", at_us=1, error="no answer", next_us=2))
    (again,) = stores.deliveries.claim(2, LEASE_US, 1)
    assert (again.attempts, again.body) == (1, row.body.decode())


NAMES = st.sampled_from([None, "a", "b"])


@given(
    st.lists(
        st.tuples(NAMES, NAMES, NAMES, st.booleans(), st.sampled_from([None, "high"]), st.sets(st.sampled_from("xy")))
    ),
    st.tuples(st.sampled_from("xyz"), st.sampled_from("abc"), NAMES, NAMES, st.sampled_from(["low", "critical"])),
)
def test_an_index_finds_the_webhooks_that_want_a_result(members, result):
    kind, stream, pattern, key, severity = result
    webhooks = [
        RegisteredWebhook(
            id=f"w{number}",
            url="http://x",
            secret="whsec_",
            stream=of,
            pattern=name,
            key=wanted_key,
            is_enabled=is_enabled,
            registered_us=number,
            kinds=tuple(kinds),
            min_severity=least,
        )
        for number, (of, name, wanted_key, is_enabled, least, kinds) in enumerate(members)
    ]
    expected = [
        one.id
        for one in webhooks
        if one.is_enabled
        and kind in one.kinds
        and one.stream in (None, stream)
        and one.pattern in (None, pattern)
        and one.key in (None, key)
        and (one.min_severity is None or (pattern is not None and severity == "critical"))
    ]
    body = orjson.dumps({} if key is None else {"key": key})
    assert [one.id for one in Webhooks(webhooks).wanting(kind, stream, pattern, severity, body)] == expected


def test_webhooks_that_a_process_of_an_earlier_release_has_changed_are_read_within_a_minute(stores, client, webhook):
    other = WebhookStore(client)
    other.all()
    record = {"format": 1, **asdict(replace(webhook, id="v", registered_us=1))}
    client.hset(WEBHOOKS_KEY, "v", orjson.dumps(record))  # leaves the mark
    assert 0 < client.ttl(WEBHOOKS_READ_KEY) <= 60
    client.delete(WEBHOOKS_READ_KEY)
    assert [one.id for one in other.all()] == ["w", "v"]


def test_webhooks_are_read_again_only_after_a_change(stores, client, webhook):
    other = WebhookStore(client)
    first = other.all()
    assert first is other.all()
    stores.webhooks.put(replace(webhook, id="v", registered_us=1))
    assert [one.id for one in other.all()] == ["w", "v"]
    stores.webhooks.change("v", lambda known: replace(known, stream="t"))
    assert [one.stream for one in other.all()] == [None, "t"]
    stores.webhooks.delete("w")
    assert [one.id for one in other.all()] == ["v"]
    client.flushdb()
    stores.webhooks.put(replace(webhook, id="u"))
    assert [one.id for one in other.all()] == ["u"]


def test_webhooks_of_an_earlier_release_get_what_is_usual(stores, client):
    fields = {"id": "w", "url": "http://x", "secret": "s", "stream": None, "pattern": None, "is_enabled": True}
    client.hset(WEBHOOKS_KEY, "w", orjson.dumps({"format": 1, **fields, "registered_us": 0}))
    assert stores.webhooks.get("w").kinds == ("alert", "correction")


def test_an_outcome_without_a_next_time_cannot_be_a_retry(queue):
    (delivery,) = queue.claim(0, LEASE_US, 1)
    with pytest.raises(ValueError, match="retry"):
        queue.settle(delivery, DeliveryOutcome(verdict="retry", at_us=1))
