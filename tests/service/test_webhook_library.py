"""Registering, changing and rotating, without HTTP."""

import base64

import pytest

from service import Registration, WebhookDraft, WebhookLibrary
from service.errors import UnknownPatternName, UnknownStream, UnknownWebhook, WebhookRefused
from service.stores import ANY, DeliveryOutcome
from streams import StreamDeclaration
from tests.builders.races import during_commit
from tests.builders.registering import register_pattern
from tests.builders.service import settings_for, sink_row

pytestmark = pytest.mark.redis

URL = "http://127.0.0.1:1/"


@pytest.fixture
def library(stores, settings, clock):
    registration = Registration(stores, settings, clock)
    registration.declare_stream(StreamDeclaration(name="orders", key="data.id"))
    register_pattern(registration, "orders", "PATTERN p EVENT SEQ(A a, B b)")
    return WebhookLibrary(stores, settings, clock)


def draft(**fields):
    return WebhookDraft(**{"url": URL, **fields})


def test_a_webhook_gets_a_fresh_secret(library):
    one, two = (library.register(draft()) for _ in range(2))
    assert one.secret != two.secret
    assert len(base64.b64decode(one.secret.removeprefix("whsec_"))) == 32
    assert one.id != two.id


def test_what_is_given_is_kept(library, stores):
    secret = "whsec_" + base64.b64encode(bytes(24)).decode()
    webhook = library.register(
        draft(secret=secret, headers={"X-A": "b"}, template={"t": "{{id}}", "n": [None, {}]}, min_severity="high")
    )
    assert stores.webhooks.get(webhook.id) == webhook
    assert webhook.secret == secret


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_short", "whsec_" + "A" * 200, "x" * 32, "whsec_" + "*" * 32, "whsec_ü"]
)
def test_a_weak_secret_is_refused(library, secret):
    with pytest.raises(WebhookRefused):
        library.register(draft(secret=secret))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"stream": "payments"}, UnknownStream),
        ({"pattern": "q"}, UnknownPatternName),
        ({"url": "ftp://x"}, WebhookRefused),
        ({"headers": {"Host": "x"}}, WebhookRefused),
        ({"template": {"a": "{{constraints}}"}}, WebhookRefused),
    ],
)
def test_what_cannot_be_is_refused_at_registration_and_later(library, stores, changes, error):
    with pytest.raises(error):
        library.register(draft(**changes))
    webhook = library.register(draft())
    with pytest.raises(error):
        library.change(webhook.id, changes)
    assert stores.webhooks.get(webhook.id) == webhook


@pytest.mark.parametrize("is_new", [True, False])
def test_no_webhook_is_for_a_stream_that_is_removed_meanwhile(library, stores, monkeypatch, is_new):
    def remove():
        stores.registry.removal.remove("orders", ANY, is_cascading=True)

    if is_new:
        put = stores.webhooks.put
        monkeypatch.setattr(stores.webhooks, "put", lambda webhook: [remove(), put(webhook)])
    else:
        webhook = library.register(draft())
        during_commit(monkeypatch, remove)
    with pytest.raises(UnknownStream, match="'orders'"):
        _ = library.register(draft(stream="orders")) if is_new else library.change(webhook.id, {"stream": "orders"})
    assert [webhook.stream for webhook in stores.webhooks.all()] == [None] * (not is_new)


def test_a_template_is_checked_against_the_kinds_that_are_sent(library):
    webhook = library.register(draft(template={"a": "{{constraints}}"}, kinds=("deviation",)))
    with pytest.raises(WebhookRefused, match="bodies do not have constraints"):
        library.change(webhook.id, {"kinds": ("alert",)})


def test_private_targets_are_refused_unless_allowed(stores, server_url, clock):
    with pytest.raises(WebhookRefused, match="ALLOWED_TARGETS"):
        WebhookLibrary(stores, settings_for(server_url), clock).register(draft())
    assert stores.webhooks.all() == []
    listed = settings_for(server_url, webhooks={"allowed_targets": "10.0.0.0/8, 127.0.0.1/32"})
    assert WebhookLibrary(stores, listed, clock).register(draft()).url == URL


def test_a_pattern_that_is_gone_does_not_hinder_other_changes(library, stores):
    webhook = library.register(draft(pattern="p"))
    stores.registry.pattern_operators.remove("p")
    assert library.change(webhook.id, {"description": "x"}).description == "x"


def test_why_a_webhook_is_disabled_is_told_until_it_is_enabled(library):
    webhook = library.register(draft())
    assert library.change(webhook.id, {"is_enabled": False}).disabled_because == "by request"
    assert library.change(webhook.id, {"description": "x"}).disabled_because == "by request"
    assert library.change(webhook.id, {"is_enabled": True}).disabled_because is None


def test_earlier_secrets_go_one_after_the_other(library, stores, clock):
    first = library.register(draft())
    second = library.rotate_secret(first.id, secret=None, grace_s=100)
    clock.forward(50)
    third = library.rotate_secret(first.id, secret=None, grace_s=100)
    assert third.secrets_at(clock.now_us()) == [third.secret, second.secret, first.secret]
    clock.forward(60)
    assert third.secrets_at(clock.now_us()) == [third.secret, second.secret]
    fourth = library.rotate_secret(first.id, secret=None, grace_s=0)
    assert [old.secret for old in fourth.retiring] == [second.secret]
    assert stores.webhooks.get(first.id) == fourth


def test_the_same_secret_again_changes_nothing(library):
    webhook = library.register(draft())
    assert library.rotate_secret(webhook.id, secret=webhook.secret, grace_s=9) == webhook


def test_what_was_given_up_is_sent_again_in_bounded_numbers(library, stores, clock):
    webhook = library.register(draft())
    rows = [sink_row(kind="alert", stream="s", id=f"a{n}", body=b'{"pattern":"p"}') for n in range(5)]
    stores.alerts.append(rows, [webhook], clock.now_us())
    for number, delivery in enumerate(stores.deliveries.claim(clock.now_us(), 10**9, 9)):
        stores.deliveries.settle(delivery, DeliveryOutcome(verdict="dead", at_us=clock.now_us() + number, error="x"))
    since_us = clock.now_us() + 1
    done = [library.send_given_up_again(webhook.id, since_us=since_us, limit=3) for _ in range(3)]
    assert [(found.queued, found.remaining) for found in done] == [(3, 1), (1, 0), (0, 0)]
    assert library.health(webhook.id).given_up == 1
    assert library.health(webhook.id).waiting == 4


def test_nothing_can_be_done_to_what_is_not_there(library):
    for act in (
        lambda: library.change("x", {}),
        lambda: library.rotate_secret("x", secret=None, grace_s=1),
        lambda: library.send_again("x", "y"),
        lambda: library.send_given_up_again("x", since_us=0, limit=1),
    ):
        with pytest.raises(UnknownWebhook):
            act()
