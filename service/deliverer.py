"""The deliverer: takes due deliveries from the queue and sends them until it is told to stop.

``python -m service.deliverer`` runs it as a process of its own. On SIGTERM or SIGINT it finishes what is on its way and
leaves the rest queued; whatever is lost by a crash comes due again when its lease runs out.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys

import httpx
import structlog

from service.errors import NotFound, RecordFormatError, StoreUnavailable
from service.process import run_process
from service.runtime import Stores, open_stores
from service.settings import Settings, WebhookSettings
from service.stores import Delivery, Outcome, RegisteredWebhook
from service.webhooks import Message, Reply, send
from streams import Clock, SystemClock

_GONE = 410
_OUTAGE_PAUSE_S = 1.0
_LEASE_MARGIN_S = 30.0
_SECOND_US = 1_000_000


class Deliverer:
    """Delivers alerts, corrections and deviations.

    Args:
        stores: The queue, the alerts and the webhooks.
        settings: Attempts, pauses, timeouts.
        clock: Tells what is due.
        jitter: Chooses the pauses.
    """

    def __init__(self, stores: Stores, settings: WebhookSettings, clock: Clock, jitter: random.Random) -> None:
        self._stores = stores
        self._settings = settings
        self._clock = clock
        self._jitter = jitter
        self._log = structlog.get_logger(__name__)

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until ``stop`` is set, then finish what is on its way."""
        on_way: set[asyncio.Task[None]] = set()
        async with self._client() as client:
            while not stop.is_set():
                started = await self._start_due(client, self._settings.concurrency - len(on_way))
                on_way |= started
                on_way -= await self._pause(stop, on_way, is_idle=not started)
            if on_way:
                await asyncio.wait(on_way)

    async def deliver_due(self) -> int:
        """One round: deliver what is due now, at most ``concurrency`` of them, and wait for the outcomes.

        Returns:
            How many attempts were made.
        """
        async with self._client() as client:
            started = await self._start_due(client, self._settings.concurrency)
            await asyncio.gather(*started)
        return len(started)

    def _client(self) -> httpx.AsyncClient:
        limits = httpx.Limits(max_connections=self._settings.concurrency)
        return httpx.AsyncClient(trust_env=False, limits=limits, timeout=self._settings.timeout_s)

    async def _start_due(self, client: httpx.AsyncClient, limit: int) -> set[asyncio.Task[None]]:
        """Claim what is due and set it on its way; nothing while Redis is away."""
        if limit < 1:
            return set()
        lease_us = round((2 * self._settings.timeout_s + _LEASE_MARGIN_S) * _SECOND_US)
        try:
            claimed = await asyncio.to_thread(self._stores.deliveries.claim, self._clock.now_us(), lease_us, limit)
        except StoreUnavailable as error:
            self._log.warning("queue-unavailable", error=error.message)
            await asyncio.sleep(_OUTAGE_PAUSE_S)
            return set()
        return {asyncio.create_task(self._deliver(client, delivery)) for delivery in claimed}

    async def _pause(
        self, stop: asyncio.Event, on_way: set[asyncio.Task[None]], *, is_idle: bool
    ) -> set[asyncio.Task[None]]:
        """Wait until there may be something to do; returns the attempts that have ended, after looking at them."""
        if is_idle or len(on_way) >= self._settings.concurrency:
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait(
                {stopping, *on_way},
                timeout=self._settings.poll_interval_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            stopping.cancel()
        ended = {task for task in on_way if task.done()}
        for task in ended:
            task.result()
        return ended

    async def _deliver(self, client: httpx.AsyncClient, delivery: Delivery) -> None:
        """One attempt and its outcome. If Redis goes away meanwhile the lease brings the delivery back."""
        log = self._log.bind(webhook=delivery.webhook, alert=delivery.alert)
        try:
            outcome = await self._attempt(client, delivery)
            await asyncio.to_thread(self._stores.deliveries.settle, delivery, outcome)
        except (StoreUnavailable, RecordFormatError) as error:
            log.warning("delivery-unsettled", code=error.code, error=error.message)
            return
        log.info("delivery-settled", verdict=outcome.verdict, status=outcome.status, error=outcome.error)

    async def _attempt(self, client: httpx.AsyncClient, delivery: Delivery) -> Outcome:
        nobody = Outcome(verdict="dropped", at_us=self._clock.now_us())
        try:
            webhook = await asyncio.to_thread(self._stores.webhooks.get, delivery.webhook)
            body = await self._body(delivery)
        except NotFound:
            return nobody
        if not webhook.is_enabled:
            return nobody
        reply = await self._send(client, webhook, delivery, body)
        if reply.status == _GONE:
            await asyncio.to_thread(self._stores.webhooks.disable, webhook)
        return self._outcome(delivery, reply)

    async def _body(self, delivery: Delivery) -> bytes:
        """What is delivered: it is in the delivery itself, or in the alert log."""
        if delivery.body is not None:
            return delivery.body.encode()
        return await asyncio.to_thread(self._stores.alerts.body, delivery.alert)

    async def _send(
        self, client: httpx.AsyncClient, webhook: RegisteredWebhook, delivery: Delivery, body: bytes
    ) -> Reply:
        message = Message(
            id=delivery.alert, url=webhook.url, secret=webhook.secret, body=body, sent_us=self._clock.now_us()
        )
        return await send(
            client,
            message,
            timeout_s=self._settings.timeout_s,
            allow_private=self._settings.allow_private_targets,
        )

    def _outcome(self, delivery: Delivery, reply: Reply) -> Outcome:
        now_us = self._clock.now_us()
        if reply.error is None:
            return Outcome(verdict="delivered", at_us=now_us, status=reply.status)
        attempts = delivery.attempts + 1
        if reply.status == _GONE or attempts >= self._settings.attempts:
            return Outcome(verdict="dead", at_us=now_us, status=reply.status, error=reply.error)
        next_us = now_us + round(pause_s(self._settings, attempts, self._jitter) * _SECOND_US)
        return Outcome(verdict="retry", at_us=now_us, status=reply.status, error=reply.error, next_us=next_us)


def pause_s(settings: WebhookSettings, attempts: int, jitter: random.Random) -> float:
    """The pause after so many failed attempts: exponential, with full jitter."""
    longest_s = min(settings.max_delay_s, settings.first_delay_s * settings.delay_factor ** (attempts - 1))
    return jitter.uniform(0.0, longest_s)


def main() -> int:
    """Run the deliverer; the exit status is that of ``run_process``."""
    return run_process("deliverer", _run)


def _run(settings: Settings) -> None:
    with open_stores(settings) as stores:
        asyncio.run(_serve(stores, settings.webhooks))


async def _serve(stores: Stores, settings: WebhookSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    structlog.get_logger(__name__).info("deliverer-started")
    await Deliverer(stores, settings, SystemClock(), random.Random()).run(stop)


if __name__ == "__main__":
    sys.exit(main())
