"""For receivers of webhooks: verifies the signature of a request and reads its message."""

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
    """A message whose signature is valid.

    Attributes:
        id: Id of the message, equal for all attempts and all webhooks; drop a message with an id seen before.
        kind: The kind of the body, such as ``alert``, ``correction``, ``derived`` or ``ping``.
        sent_at: Time of this attempt.
        data: The JSON of the body.
    """

    id: str
    kind: str
    sent_at: datetime
    data: Any


def verify_webhook(body: bytes, headers: Mapping[str, str], secret: str | Sequence[str]) -> WebhookMessage:
    """Verify the signature of a webhook's request and return its message.

    ``body`` is the body exactly as received; the names in ``headers`` may be in upper or lower case. ``secret`` is the
    webhook's secret; during a rotation, several may be given, and one of them has to fit.

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
