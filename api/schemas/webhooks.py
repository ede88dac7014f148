"""Webhooks on the wire."""

from __future__ import annotations

from typing import Self

from pydantic import ConfigDict, Field

from api.wire import WireModel
from service.stores import USUAL_KINDS, DeliveredKind, DeliveryStats, RegisteredWebhook
from streams import format_time


class NewWebhook(WireModel):
    """A webhook to register."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"url": "https://example.org/alerts", "stream": "orders"}]}
    )

    url: str = Field(description="http or https; private addresses only where the service allows them.")
    secret: str | None = Field(None, description="'whsec_' and base64 of 24 to 64 bytes; made when left out.")
    stream: str | None = Field(None, description="Only what is of this stream.")
    pattern: str | None = Field(None, description="Only what is of this pattern; deviations are of none.")
    kinds: list[DeliveredKind] = Field(
        list(USUAL_KINDS), min_length=1, description="What is sent; the member 'type' of a body says which it is."
    )


class WebhookModel(WireModel):
    """A registered webhook."""

    id: str
    url: str
    stream: str | None
    pattern: str | None
    kinds: list[DeliveredKind] = Field(description="What is sent.")
    enabled: bool = Field(description="False once the receiver answered 410 Gone.")
    registered_at: str

    @classmethod
    def from_domain(cls, webhook: RegisteredWebhook) -> Self:
        """The wire form of a webhook, without its secret."""
        return cls(
            id=webhook.id,
            url=webhook.url,
            stream=webhook.stream,
            pattern=webhook.pattern,
            kinds=list(webhook.kinds),
            enabled=webhook.is_enabled,
            registered_at=format_time(webhook.registered_us),
        )


class CreatedWebhook(WebhookModel):
    """A webhook with its secret, which is told this once."""

    secret: str

    @classmethod
    def of(cls, webhook: RegisteredWebhook) -> Self:
        """The wire form of a new webhook."""
        return cls(**WebhookModel.from_domain(webhook).model_dump(), secret=webhook.secret)


class WebhookDetail(WebhookModel):
    """A webhook, and how its deliveries fare."""

    delivered: int
    failed_attempts: int
    dead: int = Field(description="What was given up after all attempts.")
    last_status: int | None
    last_error: str | None
    last_attempt_at: str | None

    @classmethod
    def of(cls, webhook: RegisteredWebhook, stats: DeliveryStats) -> Self:
        """The wire form of a webhook and its statistics."""
        last_us = stats.last_attempt_us
        return cls(
            **WebhookModel.from_domain(webhook).model_dump(),
            delivered=stats.delivered,
            failed_attempts=stats.failed_attempts,
            dead=stats.dead,
            last_status=stats.last_status,
            last_error=stats.last_error,
            last_attempt_at=None if last_us is None else format_time(last_us),
        )


class WebhookList(WireModel):
    """All webhooks, the oldest first."""

    items: list[WebhookModel]
