"""Test helpers: one round of the deliverer."""

from __future__ import annotations

import asyncio

from service.delivery.deliverer import Deliverer


async def deliver_due(worker: Deliverer) -> int:
    """Attempt due deliveries, at most ``concurrency``, wait for the outcomes, and return their number."""
    async with worker._outbound() as outbound:
        started = await worker._start_due(outbound, worker._settings.concurrency)
        await asyncio.gather(*started)
    return len(started)
