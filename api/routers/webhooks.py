"""Webhooks: register, list, look up, change, delete; rotate secrets, test, list deliveries, send again."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Depends, Response, status

from api.access.callers import Calling
from api.locations import LOCATION, give_location
from api.requests.filters import StreamFilter, WantedPage, WantedPart, shown
from api.requests.idempotency import IdempotentRoute, once
from api.requests.preconditions import Preconditions, give_tag
from api.schemas.webhooks import (
    AttemptList,
    CreatedWebhook,
    NewWebhook,
    PingResult,
    RedeliveryRequest,
    RedeliveryResult,
    Rotation,
    WebhookChanges,
    WebhookDetail,
    WebhookList,
    WebhookModel,
)
from api.services import Served

router = APIRouter(prefix="/webhooks", tags=["webhooks"], route_class=IdempotentRoute)

_NEW_SECRET = Rotation()
_ALL_GIVEN_UP = RedeliveryRequest()


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Register a webhook",
    dependencies=[Depends(once)],
    responses={201: {"headers": LOCATION}},
)
def register_webhook(webhook: NewWebhook, services: Served, response: Response) -> CreatedWebhook:
    """Send new alerts to an address, signed by Standard Webhooks.

    A body is an alert, a correction or a deviation, in the form that ``/v1/alerts``, ``/v1/corrections`` and
    ``/v1/deviations`` show; its ``type`` says which. A correction retracts an early alert, and may arrive before the
    alert. With a ``template``, bodies have the template's form instead. Delivery is at least once and in no guaranteed
    order; the header ``webhook-id`` is the id of the result, so a receiver can drop repetitions. The secret is shown
    only once.
    """
    registered = services.webhooks.register(webhook.to_domain())
    give_location(response, "webhooks", registered.id)
    give_tag(response, registered)
    return CreatedWebhook.of(registered)


@router.get("", summary="List the webhooks")
def list_webhooks(services: Served, caller: Calling, stream: StreamFilter, part: WantedPart) -> WebhookList:
    """All webhooks that the caller may touch, the oldest first; with ``stream``, webhooks for this stream only."""
    found = shown(services.stores.webhooks.all(), caller, stream)
    return WebhookList(**part.of([WebhookModel.from_domain(webhook) for webhook in found], "id"))


@router.get("/{webhook_id}", summary="Look up a webhook")
def get_webhook(webhook_id: str, services: Served, response: Response) -> WebhookDetail:
    """A webhook, and the state of its deliveries."""
    webhook = services.stores.webhooks.get(webhook_id)
    give_tag(response, webhook)
    return WebhookDetail.of(webhook, services.webhooks.health(webhook_id))


@router.patch("/{webhook_id}", summary="Change a webhook")
def change_webhook(
    webhook_id: str, changes: WebhookChanges, services: Served, response: Response, preconditions: Preconditions
) -> WebhookDetail:
    """Change address, filters or form of a webhook; members that are left out stay as they are.

    Queued deliveries are sent to the new address in the new form; filters apply to new alerts. While a webhook is
    disabled nothing is queued for it, and queued deliveries wait until it is enabled again.
    """
    webhook = services.webhooks.change(webhook_id, changes.to_domain(), preconditions)
    give_tag(response, webhook)
    return WebhookDetail.of(webhook, services.webhooks.health(webhook_id))


@router.delete("/{webhook_id}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a webhook")
def delete_webhook(webhook_id: str, services: Served, preconditions: Preconditions) -> None:
    """Delete a webhook with its queued deliveries."""
    services.stores.webhooks.delete(webhook_id, preconditions)


@router.post("/{webhook_id}/rotate-secret", summary="Rotate a webhook's secret")
def rotate_secret(
    webhook_id: str,
    services: Served,
    response: Response,
    preconditions: Preconditions,
    rotation: Rotation = _NEW_SECRET,
) -> CreatedWebhook:
    """Replace the signing secret; the new one is shown only in this answer.

    For ``grace_s`` seconds messages are also signed with the former secret: ``webhook-signature`` has both signatures,
    separated by a blank, and a receiver accepts the one that it can verify.
    """
    webhook = services.webhooks.rotate_secret(
        webhook_id, secret=rotation.secret, grace_s=rotation.grace_s, condition=preconditions
    )
    give_tag(response, webhook)
    return CreatedWebhook.of(webhook)


@router.post("/{webhook_id}/test", summary="Send a test message")
async def test_webhook(webhook_id: str, services: Served) -> PingResult:
    """Send one signed message of the type ``ping`` at once, even if the webhook is disabled; it is not retried.

    A webhook with a template gets the filled template; its places may name ``type``, ``id``, ``webhook`` and
    ``sent_at``.
    """
    webhook = await asyncio.to_thread(services.stores.webhooks.get, webhook_id)
    return PingResult.from_domain(await services.webhooks.ping(webhook))


@router.get("/{webhook_id}/deliveries", summary="List the latest delivery attempts")
def list_deliveries(
    webhook_id: str,
    services: Served,
    page: WantedPage,
) -> AttemptList:
    """Delivery attempts of a webhook; about the latest thousand are kept."""
    services.stores.webhooks.get(webhook_id)
    return AttemptList.from_domain(services.stores.attempts(webhook_id).page(**page.options))


@router.post(
    "/{webhook_id}/deliveries/{delivery_id}/redeliver",
    status_code=status.HTTP_202_ACCEPTED,
    summary="Send a delivery again",
)
def redeliver(webhook_id: str, delivery_id: str, services: Served) -> RedeliveryResult:
    """Queue a delivery of the log again, whatever its outcome was; the ``webhook-id`` stays the same.

    A waiting delivery becomes due at once. Deliveries of a disabled webhook wait until it is enabled.
    """
    queued = services.webhooks.send_again(webhook_id, delivery_id)
    return RedeliveryResult(queued=queued, remaining=0)


@router.post(
    "/{webhook_id}/redeliver",
    status_code=status.HTTP_202_ACCEPTED,
    summary="Send abandoned deliveries again",
)
def redeliver_given_up(
    webhook_id: str, services: Served, wanted: RedeliveryRequest = _ALL_GIVEN_UP
) -> RedeliveryResult:
    """Queue the deliveries abandoned since a time again; while ``remaining`` is not 0, the same call queues more."""
    found = services.webhooks.send_given_up_again(webhook_id, since_us=wanted.since_us, limit=wanted.limit)
    return RedeliveryResult.copying(found)
