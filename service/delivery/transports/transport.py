"""The kinds of sinks, and the sender that passes deliveries to them.

A sink has the same filters, digests, retries and circuit breaker as a webhook. Only the sending differs: each kind of
sink has its own members, and a method that sends one delivery and is called in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields
from typing import Any, TypeAlias

import orjson
import structlog

from service.delivery.attempts import Reply, error_text
from service.delivery.templates import BodyTooLong, fill
from service.delivery.transports.kafka import KafkaSink
from service.delivery.transports.mail import MailSink, check_mail_template
from service.delivery.transports.parquet import ParquetSink
from service.delivery.transports.sending import Item, SendFailed, Sending
from service.errors import WebhookRefused
from service.settings import WebhookSettings
from service.stores import DigestRules, RegisteredWebhook
from service.targets import Resolver, resolve
from streams import listed

SERVER_MEMBERS = frozenset(["host", "port", "security", "servers", "options"])
"""The members of a sink that determine the server to which its password is sent, and how."""

_LONGEST_ERROR = 300


Sink: TypeAlias = ParquetSink | MailSink | KafkaSink
"""A sink. The dataclass of each kind has the members of the sink.

``address`` is for display only. ``check`` raises ``WebhookRefused`` for invalid members. ``send`` sends one delivery or
raises ``SendFailed``; all attempts of a delivery have the same id, so that the receiver can drop repetitions. If
``is_bulk``, the sink always collects results, and its digests contain all of them.
"""

SINK_KINDS: Mapping[str, type[Sink]] = {"parquet": ParquetSink, "email": MailSink, "kafka": KafkaSink}


def read_sink(members: Mapping[str, Any]) -> Sink:
    """Build a sink from its stored members. Raise ``WebhookRefused`` if a member is unknown or missing."""
    kind, sink_fields = SINK_KINDS[members["kind"]], fields(SINK_KINDS[members["kind"]])
    values, names = (
        {name: value for name, value in members.items() if name != "kind"},
        [field.name for field in sink_fields],
    )
    for name in values:
        if name not in names:
            raise WebhookRefused(
                f"a sink of the kind {members['kind']!r} has no member {name!r}; it has {listed(names)}", field=name
            )
    for field in sink_fields:
        if field.name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise WebhookRefused(f"a sink of the kind {members['kind']!r} needs {field.name!r}", field=field.name)
    return kind(**values)


def check_sink(members: Mapping[str, Any], settings: WebhookSettings, resolver: Resolver = resolve) -> None:
    """Raise ``WebhookRefused`` if the members of a sink are invalid or its target is not permitted."""
    read_sink(members).check(_sending(settings, resolver))


def check_form(members: Mapping[str, Any], template: Mapping[str, Any] | None, digest: DigestRules | None) -> None:
    """Raise ``WebhookRefused`` if the kind of a sink does not permit a template or rules of digests."""
    kind = SINK_KINDS[members["kind"]]
    if template is not None and kind is ParquetSink:
        raise WebhookRefused(f"a sink of the kind {members['kind']!r} has no template", field="template")
    if template is not None and kind is MailSink:
        check_mail_template(template)
    if kind.is_bulk and digest is not None and digest.at_once is not None:
        raise WebhookRefused(f"a sink of the kind {members['kind']!r} collects all results", field="digest")


def _sending(settings: WebhookSettings, resolver: Resolver) -> Sending:
    return Sending(rules=settings.targets, folder=settings.folder, timeout_s=settings.timeout_s, resolver=resolver)


class SinkSender:
    """Sends deliveries to sinks in a pool of threads, so that a slow receiver does not delay other sinks."""

    def __init__(self, settings: WebhookSettings, resolver: Resolver = resolve) -> None:
        self._settings = settings
        self._sending = _sending(settings, resolver)
        self._threads = ThreadPoolExecutor(max_workers=settings.concurrency, thread_name_prefix="sink")

    async def send(self, sink: RegisteredWebhook, item: str, body: bytes) -> Reply:
        """Send one delivery. The attempt fails if the sink does not finish within twice the timeout."""
        began = time.monotonic()
        status: int | None = None
        error: str | None = None
        try:
            async with asyncio.timeout(2 * self._settings.timeout_s):
                await asyncio.get_running_loop().run_in_executor(self._threads, self._send, sink, item, body)
        except TimeoutError:
            error = f"no answer within {2 * self._settings.timeout_s:g} s"
        except (SendFailed, WebhookRefused, BodyTooLong) as failure:
            error, status = str(failure)[:_LONGEST_ERROR], getattr(failure, "status", None)
        except Exception as failure:  # house: allow broad-except: the outermost frame of a sink's thread
            structlog.get_logger(__name__).exception("sink-failed", webhook=sink.id)
            error = error_text(failure)
        return Reply(status, error, round((time.monotonic() - began) * 1000))

    def close(self) -> None:
        """Discard deliveries that have not started. A thread that is sending ends after its delivery."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _send(self, sink: RegisteredWebhook, item: str, body: bytes) -> None:
        members = sink.sink or {}
        filled = None if sink.template is None else fill(sink.template, orjson.loads(body))
        delivery = Item(id=item, sink=sink.id, body=body, filled=filled, secret=sink.secret)
        read_sink(members).send(delivery, self._sending)
