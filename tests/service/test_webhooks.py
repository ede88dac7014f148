import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from service.delivery.attempts import Message, signed_headers

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
OTHER = "whsec_" + base64.b64encode(b"abcdef0123456789abcdef0123456789").decode()
STRANGE = "whsec_" + base64.b64encode(bytes(32)).decode()


def message(*secrets, **changes):
    now_us = round(datetime.now(tz=UTC).timestamp() * 1_000_000)
    fields = {
        "id": "a1",
        "kind": "derived",
        "url": "http://x",
        "body": '{"id":"a1","key":"Zoë"}'.encode(),
        "sent_us": now_us,
    }
    return Message(secrets=secrets, **{**fields, **changes})


def test_the_reference_implementation_accepts_the_signature():
    sent = message(SECRET)
    headers = signed_headers(sent)
    assert Webhook(SECRET).verify(sent.body, headers) == {"id": "a1", "key": "Zoë"}
    assert (headers["webhook-id"], headers["webhook-kind"]) == ("a1", "derived")
    assert headers["webhook-timestamp"] == str(sent.sent_us // 1_000_000)


def test_the_reference_implementation_accepts_either_signature_while_a_secret_is_replaced():
    sent = message(SECRET, OTHER)
    headers = signed_headers(sent)
    assert headers["webhook-signature"].count("v1,") == 2
    for secret in (SECRET, OTHER):
        Webhook(secret).verify(sent.body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(STRANGE).verify(sent.body, headers)


@pytest.mark.parametrize("change", [b'{"id":"a2"}', b'{"id":"a1","key":"Zo\xc3\xab"} '])
def test_the_reference_implementation_refuses_what_was_changed_on_the_way(change):
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(change, signed_headers(message(SECRET)))


def test_headers_of_the_webhooks_own_do_not_win():
    headers = signed_headers(message(SECRET, headers={"webhook-id": "x", "content-type": "text/plain", "X-Own": "1"}))
    assert (headers["webhook-id"], headers["content-type"], headers["X-Own"]) == ("a1", "application/json", "1")


def test_the_signature_is_that_of_the_specification():
    """The example of the Standard Webhooks specification."""
    sent = message(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        body=b'{"test": 2432232314}',
        sent_us=1614265330 * 1_000_000,
    )
    assert signed_headers(sent)["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
