"""Digests: the results that a webhook collects for a time, as the body of one delivery.

Results are collected in the queue. When their time is over, their body is made, and one script takes them out of the
collection and queues the body as an ordinary delivery. So a digest never changes, whatever attempts it needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import orjson

from service.errors import NotFound
from service.runtime import Stores
from service.stores import DIGEST, CollectedResult, RegisteredWebhook
from streams import format_time

DIGEST_MEMBERS = frozenset("type id webhook from until counts results more next".split())
MOST_LISTED = 100
MOST_BYTES = 200_000
_MOST_RESULTS = 10_000  # of one digest; the next one has the others


def close_digest(stores: Stores, webhook_id: str, now_us: int) -> None:
    """Queue the results that a webhook has collected as one delivery; those of a deleted webhook are dropped.

    Without effect if another process does the same at this moment.
    """
    found = stores.deliveries.collected(webhook_id, _MOST_RESULTS)
    identity = sha256("\n".join(one.id for one in found).encode()).hexdigest()[:32]
    try:
        webhook = stores.webhooks.get(webhook_id)
    except NotFound:
        body = None
    else:
        body = orjson.dumps(_body(stores, webhook, identity, found, now_us)).decode() if found else None
    stores.deliveries.close_digest(webhook_id, [one.id for one in found], identity, body, now_us)


def _body(
    stores: Stores, webhook: RegisteredWebhook, identity: str, found: Sequence[CollectedResult], now_us: int
) -> dict[str, Any]:
    listed, after = _listed(stores, found)
    chosen = {"stream": webhook.stream, "pattern": webhook.pattern, "after": after}
    filters = urlencode({name: value for name, value in chosen.items() if value is not None})
    return {
        "type": DIGEST,
        "id": identity,
        "webhook": webhook.id,
        "from": format_time(found[0].queued_us),
        "until": format_time(now_us),
        "counts": dict(sorted(Counter(one.kind for one in found).items())),
        "results": listed,
        "more": len(found) - len(listed),
        "next": f"/v1/alerts?{filters}" if len(found) > len(listed) else None,
    }


def _listed(stores: Stores, found: Sequence[CollectedResult]) -> tuple[list[dict[str, Any]], int]:
    """The first results that are still kept, bounded in number and size, and the cursor after their last alert.

    Alerts are in the order of their numbers, so that all others are after the cursor.
    """
    alerts = stores.alerts.numbered([one.item for one in found if one.body is None])
    ordered = sorted(alerts.values(), key=lambda alert: alert.number)
    numbered = iter(ordered)
    listed: list[dict[str, Any]] = []
    after, room = ordered[0].number - 1 if ordered else 0, MOST_BYTES
    for one in found:
        if one.body is None and one.item not in alerts:  # it was trimmed meanwhile
            continue
        alert = next(numbered) if one.body is None else None
        body = (one.body or "").encode() if alert is None else alert.body
        room -= len(body)
        if (listed and room < 0) or len(listed) == MOST_LISTED:
            break
        listed.append(orjson.loads(body))
        after = after if alert is None else alert.number
    return listed, after
