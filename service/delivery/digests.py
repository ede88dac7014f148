"""Digests, each of which sends the results that a webhook has collected since its last digest in one delivery.

Results are collected in the queue. When a digest is due, its body is built. Then one script removes the collected
results and queues the body as an ordinary delivery, so that all attempts send the same body.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import orjson

from service.delivery.transports.transport import SINK_KINDS
from service.errors import RecordFormatError
from service.runtime import Stores
from service.stores import DIGEST, Delivery, RegisteredWebhook
from streams import format_time

DIGEST_MEMBERS = frozenset("type id webhook from until counts results more next".split())
MOST_LISTED = 100
MOST_BYTES = 200_000
BULK_RESULTS, BULK_BYTES = 5_000, 2_000_000  # maximum in a digest of a bulk sink; the next digest has further results
_MOST_RESULTS = 10_000  # maximum in a digest of a webhook; the next digest has further results


def close_digest(
    stores: Stores, webhook_id: str, now_us: int, report: Callable[[RecordFormatError], object] = lambda _: None
) -> None:
    """Replace the results that a webhook has collected by one digest, and queue the digest as a delivery.

    If the webhook was deleted, drop the results instead. If a bulk sink has collected too many results, leave the last
    results for its next digest. If another process queues the same digest at the same time, do nothing. If the record
    of a collected delivery cannot be read, or its result cannot be listed, abandon the delivery and call ``report``
    with the error.
    """
    deliveries: Sequence[Delivery] = stores.deliveries.collected(webhook_id, _MOST_RESULTS, now_us, report)
    webhook = stores.webhooks.find(webhook_id)
    identity, body = "", None
    if webhook is not None and deliveries:
        try:
            deliveries, identity, body = _digest(stores, webhook, deliveries, now_us)
        except (RecordFormatError, ValueError, TypeError):  # the last two are errors of orjson
            if not _abandon_unlistable(stores, deliveries, now_us, report):
                raise
            close_digest(stores, webhook_id, now_us, report)
            return
    stores.deliveries.close_digest(webhook_id, [delivery.id for delivery in deliveries], identity, body, now_us)


def _digest(
    stores: Stores, webhook: RegisteredWebhook, deliveries: Sequence[Delivery], now_us: int
) -> tuple[Sequence[Delivery], str, str]:
    """Return the deliveries that a digest replaces, the id of the digest, and its body."""
    is_bulk = is_bulk_sink(webhook)
    limits = (BULK_RESULTS, BULK_BYTES) if is_bulk else (MOST_LISTED, MOST_BYTES)
    listed, after, end = _listed(stores, deliveries, *limits)
    deliveries = deliveries[:end] if is_bulk else deliveries
    identity = sha256("\n".join(delivery.id for delivery in deliveries).encode()).hexdigest()[:32]
    document = _body(webhook, identity, deliveries, now_us)
    document["results"] = [result for _, result in listed]
    if is_bulk:
        document["kinds"] = [kind for kind, _ in listed]
    else:
        document["more"] = len(deliveries) - len(listed)
        document["next"] = _next(webhook, after) if len(deliveries) > len(listed) else None
    return deliveries, identity, orjson.dumps(document).decode()


def _abandon_unlistable(
    stores: Stores, deliveries: Sequence[Delivery], now_us: int, report: Callable[[RecordFormatError], object]
) -> bool:
    """Abandon the collected deliveries whose results cannot be listed in a digest. Return whether there was one."""
    is_any = False
    for delivery in deliveries:
        try:
            listed, _, _ = _listed(stores, [delivery], MOST_LISTED, MOST_BYTES)
            orjson.dumps({"results": [result for _, result in listed]})  # as deep as in a digest
        except (RecordFormatError, ValueError, TypeError) as error:
            unlistable = RecordFormatError(f"the result of the delivery {delivery.id} cannot be listed: {error}")
            stores.deliveries.abandon(delivery, str(unlistable), now_us)
            report(unlistable)
            is_any = True
    return is_any


def is_bulk_sink(webhook: RegisteredWebhook) -> bool:
    """Return whether a webhook is a bulk sink, whose digests list all results instead of the first few."""
    return webhook.sink is not None and SINK_KINDS[webhook.sink["kind"]].is_bulk


def _body(webhook: RegisteredWebhook, identity: str, deliveries: Sequence[Delivery], now_us: int) -> dict[str, Any]:
    return {
        "type": DIGEST,
        "id": identity,
        "webhook": webhook.id,
        "from": format_time(deliveries[0].queued_us),
        "until": format_time(now_us),
        "counts": dict(sorted(Counter(delivery.kind for delivery in deliveries).items())),
    }


def _next(webhook: RegisteredWebhook, after: int) -> str:
    """Return the API path of the alerts that a digest leaves out. ``after`` is the number of the last listed alert."""
    criteria = {"stream": webhook.stream, "pattern": webhook.pattern, "after": after}
    filters = urlencode({name: value for name, value in criteria.items() if value is not None})
    return f"/v1/alerts?{filters}"


def _listed(
    stores: Stores, deliveries: Sequence[Delivery], most: int, most_bytes: int
) -> tuple[list[tuple[str, dict[str, Any]]], int, int]:
    """Return the results to list in a digest, the last listed alert's number, and the number of processed deliveries.

    The results are pairs of kind and content, at most ``most`` pairs and ``most_bytes`` bytes. A delivery is processed
    if its result is listed or its alert was trimmed. Other alerts have higher numbers than the last listed alert.
    """
    alerts = stores.alerts.numbered([delivery.alert for delivery in deliveries if delivery.body is None])
    ordered = sorted(alerts.values(), key=lambda alert: alert.number)
    numbered = iter(ordered)
    listed: list[tuple[str, dict[str, Any]]] = []
    after, bytes_left = ordered[0].number - 1 if ordered else 0, most_bytes
    for end, delivery in enumerate(deliveries):
        if delivery.body is None and delivery.alert not in alerts:  # it was trimmed meanwhile
            continue
        alert = next(numbered) if delivery.body is None else None
        body = (delivery.body or "").encode() if alert is None else alert.body
        bytes_left -= len(body)
        if (listed and bytes_left < 0) or len(listed) == most:
            return listed, after, end
        result = orjson.loads(body)
        if not isinstance(result, dict):
            raise TypeError("it is not a JSON object")
        listed.append((delivery.kind, result))
        after = after if alert is None else alert.number
    return listed, after, len(deliveries)
