"""Webhooks: operations to register, list, change, delete and test webhooks, rotate secrets, and redeliver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response, status

from api.access.auth import Calling
from api.locations import creation, give_location
from api.requests.filters import StreamFilter, WantedPage, WantedPart, reachable
from api.requests.idempotency import IdempotentRoute
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
)
from api.services import Served
from service import RegisteredWebhook

router = APIRouter(prefix="/webhooks", tags=["webhooks"], route_class=IdempotentRoute)

_NEW_SECRET = Rotation()
_ALL_GIVEN_UP = RedeliveryRequest()


def webhook_of(webhook_id: str, services: Served) -> RegisteredWebhook:
    """Return the webhook in the path."""
    return services.stores.webhooks.of_kind(webhook_id, is_sink=False)


PathWebhook = Annotated[RegisteredWebhook, Depends(webhook_of)]


@router.post("", **creation("Register a webhook"))
def register_webhook(webhook: NewWebhook, services: Served, response: Response) -> CreatedWebhook:
    """Send new results to an address, signed by Standard Webhooks.

    A body is a result in the form of its list, such as ``/v1/alerts``; its ``type`` names the kind. With a
    ``template``, bodies have the form of the template. Delivery is at least once, in no guaranteed order: a correction,
    which retracts an early alert, may arrive before the alert. The header ``webhook-id`` is the id of the result, so a
    receiver can drop repetitions. The secret is shown only once.
    """
    registered = services.webhooks.register(webhook.to_domain())
    give_location(response, "webhooks", registered.id)
    give_tag(response, registered)
    return CreatedWebhook.from_domain(registered)


@router.get("", summary="List the webhooks")
def list_webhooks(services: Served, caller: Calling, stream: StreamFilter, part: WantedPart) -> WebhookList:
    """List all webhooks that the caller may access, the oldest first, with the state of their deliveries.

    With ``stream``, only webhooks for this stream are listed.
    """
    webhooks = reachable(
        [webhook for webhook in services.stores.webhooks.all() if webhook.sink is None], caller, stream
    )
    page = part.of(webhooks, "id")
    return WebhookList(
        items=[WebhookDetail.of(webhook, services.webhooks.health(webhook.id)) for webhook in page["items"]],
        next=page["next"],
    )


@router.get("/{webhook_id}", summary="Look up a webhook")
def get_webhook(webhook: PathWebhook, services: Served, response: Response) -> WebhookDetail:
    """Look up a webhook, and the state of its deliveries."""
    give_tag(response, webhook)
    return WebhookDetail.of(webhook, services.webhooks.health(webhook.id))


@router.patch("/{webhook_id}", summary="Change a webhook")
def change_webhook(
    stored: PathWebhook, changes: WebhookChanges, services: Served, response: Response, preconditions: Preconditions
) -> WebhookDetail:
    """Change address, filters or form of a webhook. Omitted members do not change.

    Queued deliveries are sent to the new address in the new form. Filters apply to new alerts. While a webhook is
    disabled, no deliveries are queued for it, and queued deliveries wait until it is enabled again.
    """
    webhook = services.webhooks.change(stored.id, changes.to_domain(), preconditions)
    give_tag(response, webhook)
    return WebhookDetail.of(webhook, services.webhooks.health(webhook.id))


@router.delete("/{webhook_id}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a webhook")
def delete_webhook(stored: PathWebhook, services: Served, preconditions: Preconditions) -> None:
    """Delete a webhook with its queued deliveries."""
    services.stores.webhooks.delete(stored.id, preconditions)


@router.post("/{webhook_id}/rotate-secret", summary="Rotate a webhook's secret")
def rotate_secret(
    stored: PathWebhook,
    services: Served,
    response: Response,
    preconditions: Preconditions,
    rotation: Rotation = _NEW_SECRET,
) -> CreatedWebhook:
    """Replace the signing secret. The new secret is shown only in this answer.

    For ``grace_s`` seconds, messages are also signed with the former secret. ``webhook-signature`` then has both
    signatures, separated by a blank, and a receiver accepts the signature that it can verify.
    """
    webhook = services.webhooks.rotate_secret(
        stored.id, secret=rotation.secret, grace_s=rotation.grace_s, condition=preconditions
    )
    give_tag(response, webhook)
    return CreatedWebhook.from_domain(webhook)


def add_deliveries(router: APIRouter, receiver: str, lookup: Callable[..., RegisteredWebhook], *names: str) -> None:
    """Add the operations on deliveries that all kinds of receivers share.

    ``receiver`` is the receiver's name in paths and texts, ``lookup`` finds a receiver by the path's parameter, and
    ``names`` are the names of the operations.
    """
    place, dependency = f"/{{{receiver}_id}}", Depends(lookup)

    async def send_test(services: Served, target: RegisteredWebhook = dependency) -> PingResult:
        return PingResult.from_domain(await services.webhooks.ping(target))

    def list_attempts(
        services: Served,
        page: WantedPage,
        result_id: Annotated[str | None, Query(description="Only deliveries of this result.")] = None,
        *,
        target: RegisteredWebhook = dependency,
    ) -> AttemptList:
        return AttemptList.from_domain(services.stores.attempts(target.id).page(**page, item=result_id))

    def send_again(delivery_id: str, services: Served, target: RegisteredWebhook = dependency) -> RedeliveryResult:
        return RedeliveryResult(queued=services.webhooks.send_again(target.id, delivery_id), remaining=0)

    def send_given_up(
        services: Served, target: RegisteredWebhook = dependency, wanted: RedeliveryRequest = _ALL_GIVEN_UP
    ) -> RedeliveryResult:
        sent = services.webhooks.send_given_up_again(target.id, since_us=wanted.since_us, limit=wanted.limit)
        return RedeliveryResult.copying(sent)

    test, listing, again, given_up = names
    accepted = status.HTTP_202_ACCEPTED
    for verb, path, endpoint, name, code in (
        ("POST", "test", send_test, test, status.HTTP_200_OK),
        ("GET", "deliveries", list_attempts, listing, status.HTTP_200_OK),
        ("POST", "deliveries/{delivery_id}/redeliver", send_again, again, accepted),
        ("POST", "redeliver", send_given_up, given_up, accepted),
    ):
        summary, description = _DELIVERIES[path]
        router.add_api_route(
            f"{place}/{path}",
            endpoint,
            methods=[verb],
            name=name,
            status_code=code,
            summary=summary,
            description=description.replace("webhook", receiver).replace(f"``{receiver}``", "``webhook``"),  # a member
        )


_DELIVERIES = {
    "test": (
        "Send a test message",
        """Send one message of the type ``ping`` at once, even if the webhook is disabled; it is not retried.

With a template, the filled template is sent; it may use ``type``, ``id``, ``webhook`` and ``sent_at``.""",
    ),
    "deliveries": (
        "List the latest delivery attempts",
        "Delivery attempts of a webhook; about the latest thousand are kept.",
    ),
    "deliveries/{delivery_id}/redeliver": (
        "Send a delivery again",
        """Queue a delivery of the log again, whatever its outcome was; its id stays the same.

A waiting delivery becomes due at once. Deliveries of a disabled webhook wait until it is enabled.""",
    ),
    "redeliver": (
        "Send abandoned deliveries again",
        "Queue the deliveries abandoned since a time again; while ``remaining`` is not 0, the same call queues more.",
    ),
}


add_deliveries(router, "webhook", webhook_of, "test_webhook", "list_deliveries", "redeliver", "redeliver_given_up")
