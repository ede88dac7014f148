"""Requests to a webhook: what the deliverer signs is verified, and nothing else."""

from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook

from service.client import WebhookNotVerified, verify_webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_c2VjcmV0LXRoYXQtaXMtbm90LXRoZS1vbmUh"
BODY = b'{"type":"alert","id":"a1"}'


def now(**later):
    return datetime.now(tz=UTC).replace(microsecond=0) + timedelta(**later)


def signed(body=BODY, at=None, *secrets, **changed):
    at = at or now()
    signatures = " ".join(Webhook(secret).sign("a1", at, body.decode()) for secret in secrets or (SECRET,))
    fields = {"webhook-id": "a1", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signatures}
    return {**fields, "webhook-kind": "alert", **{f"webhook-{name}": value for name, value in changed.items()}}


def test_a_message_has_id_kind_time_and_data():
    at = now(minutes=-4)
    message = verify_webhook(BODY, signed(BODY, at), SECRET)
    assert (message.id, message.kind, message.sent_at) == ("a1", "alert", at)
    assert message.data == {"type": "alert", "id": "a1"}


def test_names_of_header_fields_may_be_capitalised_as_servers_give_them():
    fields = {name.title(): value for name, value in signed().items()}
    assert verify_webhook(BODY, fields, SECRET).id == "a1"


@pytest.mark.parametrize("secrets", [(SECRET,), (OTHER, SECRET), (SECRET, OTHER)])
def test_one_of_several_secrets_fits_during_a_rotation(secrets):
    assert verify_webhook(BODY, signed(), secrets).id == "a1"
    assert verify_webhook(BODY, signed(BODY, None, *secrets), SECRET).id == "a1"


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (BODY.replace(b"a1", b"a2"), signed),
        (BODY, lambda: signed(id="a2")),
        (BODY, lambda: {**signed(), "webhook-timestamp": str(int(now(minutes=1).timestamp()))}),
        (BODY, lambda: signed(BODY, now(minutes=-6))),
        (BODY, lambda: signed(BODY, now(minutes=6))),
        (BODY, lambda: signed(signature="v1")),
        (BODY, lambda: signed(signature="v1,!")),
        (BODY, lambda: signed(signature="v2," + signed()["webhook-signature"][3:])),
        (BODY, lambda: signed(timestamp="yesterday")),
        (BODY, lambda: signed(timestamp="nan")),
        (BODY, dict),
        (b"\xff", signed),
        (b"no json", lambda: signed(b"no json")),
    ],
)
def test_anything_else_is_refused(body, fields):
    with pytest.raises(WebhookNotVerified, match="the request is not a message of this webhook"):
        verify_webhook(body, fields(), SECRET)


def test_another_secret_does_not_fit():
    with pytest.raises(WebhookNotVerified):
        verify_webhook(BODY, signed(), OTHER)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_a", []])
def test_a_secret_without_the_form_of_one_is_a_fault_of_the_caller(secret):
    with pytest.raises(ValueError, match="secret"):
        verify_webhook(BODY, signed(), secret)
