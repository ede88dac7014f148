"""Webhooks: register, list, look up, delete."""

from __future__ import annotations

from fastapi import APIRouter, Depends, status

from api.bodies import require_json
from api.schemas.webhooks import CreatedWebhook, NewWebhook, WebhookDetail, WebhookList, WebhookModel
from api.services import Served

router = APIRouter(prefix="/webhooks", tags=["webhooks"])


@router.post(
    "", status_code=status.HTTP_201_CREATED, summary="Register a webhook", dependencies=[Depends(require_json)]
)
def register_webhook(webhook: NewWebhook, services: Served) -> CreatedWebhook:
    """Send what is found from now on to an address, signed as Standard Webhooks has it.

    A body is an alert, a correction or a deviation, in the form that ``/v1/alerts``, ``/v1/corrections`` and
    ``/v1/deviations`` show; its ``type`` says which. A correction takes an early alert back and may arrive before it.
    Delivery is at-least-once; the header ``webhook-id`` is the id of what is sent, so a receiver can tell repetitions.
    The secret is told in this answer only.
    """
    created = services.registration.register_webhook(
        webhook.url,
        secret=webhook.secret,
        stream=webhook.stream,
        pattern=webhook.pattern,
        kinds=tuple(dict.fromkeys(webhook.kinds)),
    )
    return CreatedWebhook.of(created)


@router.get("", summary="List the webhooks")
def list_webhooks(services: Served) -> WebhookList:
    """All webhooks, the oldest first."""
    return WebhookList(items=[WebhookModel.from_domain(webhook) for webhook in services.stores.webhooks.all()])


@router.get("/{webhook_id}", summary="Look up a webhook")
def get_webhook(webhook_id: str, services: Served) -> WebhookDetail:
    """A webhook, and how its deliveries fare."""
    webhook = services.stores.webhooks.get(webhook_id)
    return WebhookDetail.of(webhook, services.stores.webhooks.stats(webhook_id))


@router.delete("/{webhook_id}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a webhook")
def delete_webhook(webhook_id: str, services: Served) -> None:
    """Send nothing more there, what is queued included."""
    services.stores.webhooks.delete(webhook_id)
