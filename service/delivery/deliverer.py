"""The deliverer, which claims due deliveries from the queue and sends them.

``python -m service.delivery.deliverer`` runs the deliverer as a process. On SIGTERM or SIGINT the process finishes the
attempts in progress and exits. If the process crashes, the deliveries that it has claimed are due again when their
leases expire.
"""

from __future__ import annotations

import asyncio
import math
import random
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from service.delivery.attempts import Reply, error_text, message_of, send
from service.delivery.digests import close_digest
from service.delivery.outbound import Outbound
from service.delivery.templates import BodyTooLong
from service.delivery.transports.transport import SinkSender
from service.errors import NotFound, RecordFormatError, RegistryContended, StoreUnavailable
from service.observing.tracing import spans_of
from service.process import life_sign, run_process
from service.runtime import Stores, open_stores
from service.settings import Settings, WebhookSettings
from service.stores import Delivery, DeliveryOutcome, RegisteredWebhook
from service.targets import Resolver, resolve
from streams import Clock, SystemClock, format_time

if TYPE_CHECKING:
    from service.observing.spans import OpenSpan, Spans

_GONE = 410
_OUTAGE_PAUSE_S = 1.0
_SECOND_US = 1_000_000
_DIGEST_PAUSE_US = 60 * _SECOND_US


class Deliverer:
    """Delivers results and digests to webhooks and sinks.

    If ``spans`` is given, attempts for results of traced requests are traced.
    """

    def __init__(
        self,
        stores: Stores,
        settings: WebhookSettings,
        clock: Clock,
        jitter: random.Random,
        resolver: Resolver = resolve,
        spans: Spans | None = None,
    ) -> None:
        self._stores = stores
        self._resolver = resolver
        self._settings = settings
        self._clock = clock
        self._jitter = jitter
        self._spans = spans
        self._sinks = SinkSender(settings, resolver)
        self._log = structlog.get_logger(__name__)

    async def run(self, stop: asyncio.Event, on_round: Callable[[], None] = lambda: None) -> None:
        """Deliver until ``stop`` is set, then finish the attempts in progress. Call ``on_round`` in each round."""
        running: set[asyncio.Task[None]] = set()
        async with self._outbound() as outbound:
            while not stop.is_set():
                on_round()
                started = await self._start_due(outbound, self._settings.concurrency - len(running))
                running |= started
                running -= await self._pause(stop, running, is_idle=not started)
            if running:
                await asyncio.wait(running)
        self._sinks.close()

    def _outbound(self) -> Outbound:
        return Outbound(self._settings.targets, connections=self._settings.concurrency, resolver=self._resolver)

    async def _start_due(self, outbound: Outbound, limit: int) -> set[asyncio.Task[None]]:
        if limit < 1:
            return set()
        lease_us = round((2 * self._settings.timeout_s + self._settings.lease_margin_s) * _SECOND_US)
        try:
            claimed = await asyncio.to_thread(self._claim, self._clock.now_us(), lease_us, limit)
        except StoreUnavailable as error:
            self._log.warning("queue-unavailable", error=error.message)
            await asyncio.sleep(_OUTAGE_PAUSE_S)
            return set()
        return {asyncio.create_task(self._deliver(outbound, delivery)) for delivery in claimed}

    def _claim(self, now_us: int, lease_us: int, limit: int) -> list[Delivery]:
        close = partial(self._close, now_us=now_us)
        return self._stores.deliveries.claim(now_us, lease_us, limit, close, self._report_unreadable)

    def _report_unreadable(self, error: RecordFormatError) -> None:
        self._log.warning("delivery-unreadable", code=error.code, error=error.message)

    def _close(self, webhook_id: str, now_us: int) -> None:
        try:
            close_digest(self._stores, webhook_id, now_us, self._report_unreadable)
            return
        except StoreUnavailable:
            raise
        except RecordFormatError as error:
            self._log.warning("digest-unreadable", webhook=webhook_id, code=error.code, error=error.message)
        except Exception:  # house: allow broad-except: one digest must not stop the deliveries to other webhooks
            self._log.exception("digest-failed", webhook=webhook_id)
        self._stores.deliveries.postpone_digest(webhook_id, now_us + _DIGEST_PAUSE_US)

    async def _pause(
        self, stop: asyncio.Event, running: set[asyncio.Task[None]], *, is_idle: bool
    ) -> set[asyncio.Task[None]]:
        """Return the ended attempts. If no attempt can start now, first wait until one ends or the next poll is due."""
        if is_idle or len(running) >= self._settings.concurrency:
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait(
                {stopping, *running},
                timeout=self._settings.poll_interval_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            stopping.cancel()
        ended = {task for task in running if task.done()}
        for task in ended:
            task.result()
        return ended

    async def _deliver(self, outbound: Outbound, delivery: Delivery) -> None:
        """If the outcome of an attempt cannot be stored, the delivery is due again when its lease expires."""
        log = self._log.bind(webhook=delivery.webhook, alert=delivery.alert)
        try:
            outcome = await self._settled_attempt(outbound, delivery)
        except (StoreUnavailable, RecordFormatError) as error:
            log.warning("delivery-unsettled", code=error.code, error=error.message)
            return
        except Exception:  # house: allow broad-except: one delivery must not stop the others
            log.exception("delivery-unsettled")
            return
        log.info("delivery-settled", verdict=outcome.verdict, status=outcome.status, error=outcome.error)

    async def _settled_attempt(self, outbound: Outbound, delivery: Delivery) -> DeliveryOutcome:
        try:
            outcome = await self._attempt(outbound, delivery)
            await asyncio.to_thread(self._stores.deliveries.settle, delivery, outcome)
        except (StoreUnavailable, RecordFormatError):
            raise
        except Exception as failure:  # house: allow broad-except: one receiver must not stop the deliveries to others
            self._log.exception("delivery-failed", webhook=delivery.webhook, alert=delivery.alert)
            outcome = self._outcome(delivery, Reply(None, error_text(failure)))
            await asyncio.to_thread(self._stores.deliveries.settle, delivery, outcome)
        return outcome

    async def _attempt(self, outbound: Outbound, delivery: Delivery) -> DeliveryOutcome:
        try:
            webhook, body = await asyncio.to_thread(self._look_up, delivery)
        except NotFound:
            return DeliveryOutcome(verdict="dropped", at_us=self._clock.now_us())
        reply = await self._send_traced(outbound, webhook, delivery, body)
        if reply.error is not None:
            await asyncio.to_thread(self._disable_where_hopeless, webhook, reply)
        return self._outcome(delivery, reply)

    def _look_up(self, delivery: Delivery) -> tuple[RegisteredWebhook, bytes]:
        webhook = self._stores.webhooks.get(delivery.webhook)
        return webhook, self._stores.alerts.body(delivery.alert) if delivery.body is None else delivery.body.encode()

    async def _send_traced(
        self, outbound: Outbound, webhook: RegisteredWebhook, delivery: Delivery, body: bytes
    ) -> Reply:
        if self._spans is None or delivery.traceparent is None:
            return await self._send(outbound, webhook, delivery, body, None)
        span = _attempt_span(self._spans, delivery, delivery.traceparent, webhook)
        error: str | None = "the attempt did not end"
        try:
            reply = await self._send(outbound, webhook, delivery, body, span.traceparent)
            error = reply.error
            if reply.status is not None:
                span.note({"http.response.status_code": reply.status})
        finally:
            if error is not None:
                span.fail(error)
            span.end()
        return reply

    async def _send(
        self,
        outbound: Outbound,
        webhook: RegisteredWebhook,
        delivery: Delivery,
        body: bytes,
        traceparent: str | None,
    ) -> Reply:
        if webhook.sink is not None:
            return await self._sinks.send(webhook, delivery.alert, body)
        try:
            message = message_of(webhook, delivery.kind, delivery.alert, body, self._clock.now_us())
        except BodyTooLong as error:
            return Reply(None, str(error))
        if traceparent is not None:
            message = replace(message, traceparent=traceparent)
        return await send(outbound, message, timeout_s=self._settings.timeout_s)

    def _disable_where_hopeless(self, attempted: RegisteredWebhook, reply: Reply) -> None:
        """Disable a webhook whose receiver answered 410 Gone or has failed for too long. Its deliveries stay queued.

        ``attempted`` is the webhook at the time of the attempt. If its receiver was changed since, it is not disabled.
        """
        with suppress(NotFound, RegistryContended):  # the webhook is deleted, or the next attempt disables it
            reason = self._disable_reason(attempted, reply)
            if reason is None:
                return

            def disabled(webhook: RegisteredWebhook) -> RegisteredWebhook:
                if (webhook.url, webhook.sink) != (attempted.url, attempted.sink):
                    return webhook
                return replace(webhook, is_enabled=False, disabled_because=reason)

            if not self._stores.webhooks.change(attempted.id, disabled).is_enabled:
                self._log.warning("webhook-disabled", webhook=attempted.id, reason=reason)

    def _disable_reason(self, webhook: RegisteredWebhook, reply: Reply) -> str | None:
        if reply.status == _GONE and webhook.sink is None:
            return "the receiver answered 410 Gone"
        since_us = self._stores.deliveries.circuit(webhook.id).since_us
        if since_us is None or self._clock.now_us() - since_us < self._settings.disable_after_s * _SECOND_US:
            return None
        return f"nothing but failures since {format_time(since_us)}"

    def _outcome(self, delivery: Delivery, reply: Reply) -> DeliveryOutcome:
        now_us = self._clock.now_us()
        outcome = DeliveryOutcome(
            verdict="delivered",
            at_us=now_us,
            status=reply.status,
            error=reply.error,
            duration_ms=reply.duration_ms,
        )
        if reply.error is None:
            return outcome
        attempts = delivery.attempts + 1
        if attempts >= self._settings.attempts and reply.status != _GONE:  # a disabled webhook may be enabled again
            return replace(outcome, verdict="dead")
        pause = pause_s(self._settings, attempts, self._jitter)
        requested_s = reply.retry_after_s
        if requested_s is None:
            return replace(outcome, verdict="retry", next_us=now_us + round(pause * _SECOND_US))
        rest_us = now_us + round(min(requested_s, self._settings.max_delay_s) * _SECOND_US)
        return replace(outcome, verdict="retry", next_us=rest_us, rest_us=rest_us)


def _attempt_span(spans: Spans, delivery: Delivery, parent: str, webhook: RegisteredWebhook) -> OpenSpan:
    """The span contains only the host of the webhook's URL, because the rest may be secret."""
    attributes: dict[str, str | int | bool] = {
        "forestall.webhook.id": webhook.id,
        "forestall.alert.id": delivery.alert,
        "forestall.attempt": delivery.attempts + 1,
        "http.request.method": "POST",
        "server.address": urlsplit(webhook.url).hostname or "",
    }
    return spans.begin(f"webhook {webhook.id}", parent, attributes, kind="client")


def pause_s(settings: WebhookSettings, attempts: int, jitter: random.Random) -> float:
    """Return the pause in seconds after a number of failed attempts, by exponential backoff with full jitter."""
    try:
        delay_s = settings.first_delay_s * settings.delay_factor ** (attempts - 1)
    except OverflowError:
        delay_s = math.inf
    return jitter.uniform(0.0, min(settings.max_delay_s, delay_s))


def main() -> int:
    """Run the deliverer, and return the exit status of ``run_process``."""
    return run_process("deliverer", _run)


def _run(settings: Settings) -> None:
    with spans_of(settings.tracing, "deliverer") as spans, open_stores(settings) as stores:
        asyncio.run(_serve(stores, settings, spans))


async def _serve(stores: Stores, settings: Settings, spans: Spans | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    structlog.get_logger(__name__).info("deliverer-started")
    deliverer = Deliverer(stores, settings.webhooks, SystemClock(), random.Random(), spans=spans)
    await deliverer.run(stop, life_sign(settings.life_dir, "deliverer"))


if __name__ == "__main__":
    sys.exit(main())
