"""The verification of webhook requests, with which receivers check the signature of a request and read its message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook, WebhookVerificationError

from service.client.errors import WebhookNotVerified


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookMessage:
    """A message with a valid signature.

    Attributes:
        id: Id of the message, which is the same for all attempts and all webhooks. Receivers should drop a message
            whose id they have already received.
        kind: Kind of the body, such as ``alert``, ``correction``, ``derived`` or ``ping``.
        sent_at: Time of this attempt.
        data: Decoded JSON of the body.
    """

    id: str
    kind: str
    sent_at: datetime
    data: Any


def verify_webhook(body: bytes, headers: Mapping[str, str], secret: str | Sequence[str]) -> WebhookMessage:
    """Verify the signature of a request to a webhook, and return its message.

    ``body`` must be exactly the received bytes. The names in ``headers`` are not case-sensitive. ``secret`` is the
    webhook's secret. During a rotation it can be a sequence of secrets, of which at least one must match.

    Raises:
        WebhookNotVerified: The request is not from the service, was changed, or is more than five minutes old.
        ValueError: A secret is malformed.
    """
    checks = [_check(candidate) for candidate in ([secret] if isinstance(secret, str) else secret)]
    if not checks:
        raise ValueError("no secret is given; the answer to POST /v1/webhooks has it")
    fields = {name.lower(): value for name, value in headers.items()}
    reason = ""
    for check in checks:
        try:
            check.verify(body, fields, json_parse=False)
            data = orjson.loads(body)
        except (WebhookVerificationError, ValueError) as error:
            reason = str(error)
        else:
            sent_at = datetime.fromtimestamp(float(fields["webhook-timestamp"]), tz=UTC)
            kind = fields.get("webhook-kind", "")
            return WebhookMessage(id=fields["webhook-id"], kind=kind, sent_at=sent_at, data=data)
    raise WebhookNotVerified(f"the request is not a message of this webhook: {reason}")


def _check(secret: str) -> Webhook:
    try:
        return Webhook(secret)
    except (EmptyWebhookSecretError, ValueError) as error:
        raise ValueError(f"a secret is 'whsec_' and base64: {error}") from error
