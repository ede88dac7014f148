"""The library of webhooks, which registers, changes and tests webhooks, and resends their deliveries."""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from typing import Any

import orjson

from service.delivery.attempts import SECRET_PREFIX, Reply, check_headers, check_secret, message_of, send
from service.delivery.digests import DIGEST_MEMBERS
from service.delivery.outbound import Outbound
from service.delivery.templates import BodyTooLong, check_template
from service.delivery.transports.transport import (
    SERVER_MEMBERS,
    SINK_KINDS,
    SinkSender,
    check_form,
    check_sink,
    read_sink,
)
from service.errors import WebhookRefused
from service.runtime import Stores
from service.settings import Settings
from service.stores import (
    ANY,
    Checks,
    Circuit,
    Condition,
    DeliveryStats,
    DigestRules,
    RegisteredWebhook,
    RetiringSecret,
    Severity,
)
from service.targets import Resolver, check_target, resolve
from shards import USUAL_KINDS
from streams import STREAMS_KEY, Clock, duration_of, format_time

BY_REQUEST = "by request"

_SECRET_BYTES = 32
_RETIRING_KEPT = 4
_SECOND_US = 1_000_000
_LONGEST_US = 7 * 86_400 * _SECOND_US


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDraft:
    """A webhook or other sink to be registered. It receives only results that match all its filters.

    Attributes:
        secret: Of a webhook, the signing secret: ``whsec_`` and base64 of 24 to 64 bytes, or None to generate a
            secret. Of another sink, the password for its server.
        stream, pattern, key, min_severity: Filters of results. A filter of None selects all results.
        name: A unique name, or empty.
        digest: The rules of digests. ``every`` is a duration. The optional ``at_once`` is the least severity of
            results that are sent at once.
        sink: Kind and members of a sink that is not a webhook. Such a sink has no ``url``.
    """

    url: str = ""
    secret: str | None = None
    stream: str | None = None
    pattern: str | None = None
    min_severity: Severity | None = None
    kinds: tuple[str, ...] = USUAL_KINDS
    description: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    template: Mapping[str, Any] | None = None
    name: str = ""
    digest: Mapping[str, Any] | None = None
    sink: Mapping[str, Any] | None = None
    key: str | None = None
    is_enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookHealth:
    """The state of a webhook.

    Attributes:
        waiting: Number of queued deliveries.
        given_up: Number of abandoned deliveries.
        collected: Number of deliveries that are collected for the next digest.
    """

    stats: DeliveryStats
    circuit: Circuit
    waiting: int
    given_up: int
    collected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Redelivery:
    """The result of resending abandoned deliveries.

    ``queued`` deliveries were queued again. ``remaining`` deliveries are still abandoned.
    """

    queued: int
    remaining: int


class WebhookLibrary:
    """Registers, changes and tests webhooks, and resends their deliveries."""

    def __init__(self, stores: Stores, settings: Settings, clock: Clock, resolver: Resolver = resolve) -> None:
        self._stores = stores
        self._settings = settings.webhooks
        self._clock = clock
        self._resolver = resolver

    def register(self, draft: WebhookDraft) -> RegisteredWebhook:
        """Register a webhook, which receives new results if it is enabled.

        Raise ``WebhookNameTaken`` if its name is in use, or ``WebhookRefused`` if its address, secret, headers or
        template are invalid.
        """
        if draft.secret is not None and draft.sink is None:
            check_secret(draft.secret)
        members = {member.name: getattr(draft, member.name) for member in fields(draft)} | {
            "id": f"{'wh' if draft.sink is None else 'sink'}_{uuid.uuid4().hex}",
            "url": draft.url if draft.sink is None else read_sink(draft.sink).address,
            "secret": draft.secret or (_fresh_secret() if draft.sink is None else ""),
            "digest": read_digest(_digest_of(draft.sink, draft.digest)),
        }
        reason = None if draft.is_enabled else BY_REQUEST
        webhook = RegisteredWebhook(**members, disabled_because=reason, registered_us=self._clock.now_us())
        self._check(webhook, None)
        self._stores.webhooks.put(webhook)
        return webhook

    def change(self, webhook_id: str, changes: Mapping[str, Any], condition: Condition = ANY) -> RegisteredWebhook:
        """Change attributes of a webhook. ``changes`` has the new value of each attribute.

        If the state, address or secret is changed and the webhook is enabled afterwards, its failures are reset and its
        deliveries are resumed. If a new value is invalid, raise ``WebhookRefused``.
        """
        if "digest" in changes:
            sink = self._stores.webhooks.get(webhook_id).sink
            changes = {**changes, "digest": read_digest(_digest_of(sink, changes["digest"]))}

        def changed(registered: RegisteredWebhook) -> RegisteredWebhook:
            webhook = replace(registered, **changes)
            if "sink" in changes:
                sink = {**(registered.sink or {}), **changes["sink"]}
                webhook = replace(webhook, sink=sink, url=read_sink(sink).address)
                if "secret" not in changes:
                    _require_secret_stays(registered, sink)
            if webhook.is_enabled:
                webhook = replace(webhook, disabled_because=None)
            elif registered.is_enabled:
                webhook = replace(webhook, disabled_because=BY_REQUEST)
            self._check(webhook, registered)
            return webhook

        def required() -> Checks:
            stream = changes.get("stream")
            return () if stream is None else self._stores.registry.check(STREAMS_KEY, stream)

        webhook = self._stores.webhooks.change(webhook_id, changed, condition, required)
        if webhook.is_enabled and changes.keys() & {"is_enabled", "url", "sink", "secret"}:
            self._stores.deliveries.wake(webhook_id, self._clock.now_us())
        return webhook

    def rotate_secret(
        self, webhook_id: str, *, secret: str | None, grace_s: int, condition: Condition = ANY
    ) -> RegisteredWebhook:
        """Replace a webhook's secret. For ``grace_s`` seconds, messages are signed with the former secret as well."""
        if secret is not None:
            check_secret(secret)
        new_secret, now_us = secret or _fresh_secret(), self._clock.now_us()

        def changed(registered: RegisteredWebhook) -> RegisteredWebhook:
            if registered.secret == new_secret:
                return registered
            former = RetiringSecret(secret=registered.secret, until_us=now_us + grace_s * _SECOND_US)
            valid = [
                retiring_secret
                for retiring_secret in (former, *registered.retiring)
                if now_us < retiring_secret.until_us and retiring_secret.secret != new_secret
            ]
            return replace(registered, secret=new_secret, retiring=tuple(valid[:_RETIRING_KEPT]))

        return self._stores.webhooks.change(webhook_id, changed, condition)

    def health(self, webhook_id: str) -> WebhookHealth:
        return WebhookHealth(
            stats=self._stores.webhooks.stats(webhook_id),
            circuit=self._stores.deliveries.circuit(webhook_id),
            waiting=self._stores.deliveries.waiting(webhook_id),
            given_up=self._stores.deliveries.count_given_up(webhook_id),
            collected=self._stores.deliveries.count_collected(webhook_id),
        )

    async def ping(self, webhook: RegisteredWebhook) -> Reply:
        """Send a signed ``ping`` to a webhook or sink in one attempt, even if it is disabled."""
        now_us = self._clock.now_us()
        ping = {
            "type": "ping",
            "id": f"ping_{uuid.uuid4().hex}",
            "webhook": webhook.id,
            "sent_at": format_time(now_us),
        }
        if webhook.sink is not None:
            with closing(SinkSender(self._settings, self._resolver)) as sinks:
                return await sinks.send(webhook, ping["id"], orjson.dumps(ping))
        try:
            message = message_of(webhook, ping["type"], ping["id"], orjson.dumps(ping), now_us)
        except BodyTooLong as error:
            return Reply(None, str(error))
        async with Outbound(self._settings.targets, connections=1, resolver=self._resolver) as outbound:
            return await send(outbound, message, timeout_s=self._settings.timeout_s)

    def send_again(self, webhook_id: str, delivery_id: str) -> int:
        """Queue a delivery again, whatever its outcome, and return 1. If an attempt is in progress, return 0."""
        self._stores.webhooks.get(webhook_id)
        delivery = self._stores.deliveries.delivery(webhook_id, delivery_id)
        return self._stores.deliveries.send_again(webhook_id, [delivery], self._clock.now_us())

    def send_given_up_again(self, webhook_id: str, *, since_us: int, limit: int) -> Redelivery:
        """Requeue up to ``limit`` deliveries that were abandoned at or after ``since_us``, oldest first.

        Callers repeat the call until ``remaining`` is 0. Deliveries whose records cannot be read are never requeued.
        If only such deliveries are left, ``remaining`` is 0, so that callers stop.
        """
        self._stores.webhooks.get(webhook_id)
        deliveries = self._stores.deliveries.given_up(webhook_id, since_us, limit)
        queued = self._stores.deliveries.send_again(webhook_id, deliveries, self._clock.now_us()) if deliveries else 0
        remaining = self._stores.deliveries.count_given_up(webhook_id, since_us) if deliveries else 0
        return Redelivery(queued=queued, remaining=remaining)

    def _check(self, webhook: RegisteredWebhook, former: RegisteredWebhook | None) -> None:
        """Stream, pattern, headers, address and sink are not checked again if they are the same as in ``former``."""
        checks: dict[str, Callable[[], object]] = {
            "stream": lambda: webhook.stream is None or self._stores.registry.stream(webhook.stream),
            "pattern": lambda: webhook.pattern is None or self._stores.registry.named(webhook.pattern),
            "headers": lambda: check_headers(webhook.headers),
        }
        if (sink := webhook.sink) is None:
            checks["url"] = lambda: check_target(webhook.url, self._settings.targets, self._resolver)
        else:
            checks["sink"] = lambda: check_sink(sink, self._settings, self._resolver)
            check_form(sink, webhook.template, webhook.digest)
        for name, check in checks.items():
            if former is None or getattr(webhook, name) != getattr(former, name):
                check()
        members = {kind.delivered_as: kind.members for kind in self._stores.result_kinds.values() if kind.delivered_as}
        if unknown := set(webhook.kinds) - members.keys():
            kinds = ", ".join(sorted(members))
            raise WebhookRefused(f"no result of kind {min(unknown)!r} is delivered; there are {kinds}", field="kinds")
        if webhook.template is not None:
            digested = DIGEST_MEMBERS if webhook.digest is not None else frozenset[str]()
            check_template(webhook.template, digested.union(*(members[kind] for kind in webhook.kinds)))


def read_digest(document: Mapping[str, Any] | None) -> DigestRules | None:
    """Parse the rules of digests. Raise ``WebhookRefused`` unless ``every`` is a duration of 1 s to 7 d."""
    if document is None:
        return None
    every_us = duration_of(document["every"])
    if not every_us or not _SECOND_US <= every_us <= _LONGEST_US:
        raise WebhookRefused(
            f"digest: every is {document['every']!r}; it is a duration of 1 s to 7 d, such as 10 min", field="digest"
        )
    return DigestRules(every=document["every"], every_us=every_us, at_once=document.get("at_once"))


def _digest_of(sink: Mapping[str, Any] | None, digest: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    is_bulk = sink is not None and SINK_KINDS[sink["kind"]].is_bulk
    return {"every": "1 min"} if is_bulk and digest is None else digest


def _require_secret_stays(former: RegisteredWebhook, sink: Mapping[str, Any]) -> None:
    """Raise ``WebhookRefused`` if a change of a sink would send its password to another server."""
    former_sink = former.sink or {}
    if former.secret and any(former_sink.get(name) != sink.get(name) for name in SERVER_MEMBERS):
        raise WebhookRefused("the password would be sent to another server; send it again as 'secret'", field="secret")


def _fresh_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
