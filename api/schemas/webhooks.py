"""Webhooks on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field

from api.wire import ChangesModel, From, Moment, OneOf, PageModel, PartModel, Secret, Text, Time, WireModel
from service import DIGEST, RegisteredWebhook, Reply, Severity, WebhookDraft, WebhookHealth
from shards import RESULT_KINDS, USUAL_KINDS
from streams import format_time, parse_time

Description: TypeAlias = Annotated[str, Field(max_length=500, description="For people.")]
Headers: TypeAlias = Annotated[
    dict[str, str], Field(description="Further headers of each request; at most 10, none that the service sets itself.")
]
Template: TypeAlias = Annotated[
    dict[str, Any] | None,
    Field(
        description="The form of the bodies: a JSON object in whose strings {{path.to.field}} is replaced by a "
        "member of the usual body."
    ),
]
_DELIVERED = sorted(kind.delivered_as for kind in RESULT_KINDS.values() if kind.delivered_as)
DeliveredKind: TypeAlias = Annotated[str, OneOf(tuple(_DELIVERED))]
SentKind: TypeAlias = Annotated[str, OneOf((*_DELIVERED, DIGEST))]
Kinds: TypeAlias = Annotated[
    list[DeliveredKind],
    Field(min_length=1, description="Kinds of results to send; the member 'type' of a body names its kind."),
]
LeastSeverity: TypeAlias = Annotated[
    Severity | None, Field(description="Only results of patterns of at least this severity; deviations have none.")
]


Key: TypeAlias = Annotated[
    str | None,
    Field(
        min_length=1,
        description="Only results of this key: of a transaction, or of a row in the table of an aggregate.",
    ),
]


class DigestModel(WireModel):
    """Collection of results in digests, which are delivered as one body of the type `digest`."""

    every: str = Field(
        description="How long results are collected after the first of them, such as '10 min'; 1 s to 7 d."
    )
    at_once: Severity | None = Field(
        None, description="Results of patterns of at least this severity are delivered at once, by themselves."
    )


HttpStatus: TypeAlias = Annotated[
    int | None, From("status"), Field(description="HTTP status of the answer, if there was one.")
]
Digest: TypeAlias = Annotated[DigestModel | None, Field(description="Collect results; null: deliver each at once.")]

WebhookName: TypeAlias = Annotated[
    str | None,
    Field(
        pattern=r"^[A-Za-z0-9._-]{1,100}$",
        description="A unique name: letters, digits, '.', '_' and '-'.",
    ),
]


class NewReceiver(WireModel):
    """The members that webhooks and other receivers share at registration."""

    name: WebhookName = None
    stream: str | None = Field(None, description="Only results of this stream.")
    pattern: str | None = Field(None, description="Only results of this pattern; deviations belong to no pattern.")
    key: Key = None
    min_severity: LeastSeverity = None
    kinds: Kinds = Field(list(USUAL_KINDS), validate_default=False)
    description: Description = ""
    digest: Digest = None
    enabled: bool = Field(True, description="False: nothing is sent, and no results wait for it, until it is enabled.")


class NewWebhook(NewReceiver):
    """A webhook to register."""

    url: str = Field(description="http or https; private addresses only where the service allows them.")
    secret: str | None = Field(None, description="'whsec_' and base64 of 24 to 64 bytes (default: generated).")
    headers: Headers = Field({}, validate_default=False)
    template: Template = None

    def to_domain(self) -> WebhookDraft:
        return as_draft(self)


def as_draft(model: Any, sink: Mapping[str, Any] | None = None) -> WebhookDraft:
    """Convert a new receiver to a draft. ``sink`` contains the members that only sinks of its kind have."""
    names = {field.name for field in fields(WebhookDraft)} - {"sink"}
    members = {name: getattr(model, name) for name in type(model).model_fields if name in names}
    digest = None if model.digest is None else model.digest.model_dump()
    shared = {"name": model.name or "", "kinds": _once_each(model.kinds), "digest": digest}
    shared["is_enabled"] = model.enabled
    return WebhookDraft(**{**members, **shared, "sink": sink})


class ReceiverChanges(ChangesModel):
    """The changes that receivers of all kinds share."""

    stream: str | None = Field(None, description="Null: of any stream.")
    pattern: str | None = Field(None, description="Null: of any pattern.")
    key: Key = None
    min_severity: LeastSeverity = None
    kinds: Kinds | None = None
    description: Description | None = None
    template: Template = None
    digest: Digest = None
    enabled: bool | None = Field(
        None,
        description="False suspends deliveries; queued ones wait. True resumes them, and resets the failure count.",
    )

    def to_domain(self) -> dict[str, Any]:
        """Return the changes by name of the receiver's attribute."""
        changes = {name: getattr(self, name) for name in self.model_fields_set}
        if "enabled" in changes:
            changes["is_enabled"] = changes.pop("enabled")
        if self.digest is not None:
            changes["digest"] = self.digest.model_dump()
        if "kinds" in changes:
            changes["kinds"] = _once_each(changes["kinds"])
        return changes


class WebhookChanges(ReceiverChanges):
    """Changes of a webhook. Omitted members do not change, and null resets a member."""

    created = (NewWebhook,)

    url: str | None = Field(None, description="URL to send to, as at registration; not null.")
    headers: Headers | None = Field(None, description="Replaces all present headers.")


class WebhookModel(WireModel):
    """A registered webhook."""

    id: str
    name: Text
    url: str
    stream: str | None
    pattern: str | None
    key: str | None
    min_severity: Severity | None
    kinds: list[DeliveredKind] = Field(description="The kinds of results that are sent.")
    description: str
    header_names: Annotated[list[str], From("headers"), BeforeValidator(sorted)] = Field(
        description="Names of the further headers of each request; their values are not shown."
    )
    template: dict[str, Any] | None
    digest: Digest = None
    enabled: Annotated[bool, From("is_enabled")] = Field(description="False: nothing is sent; queued deliveries wait.")
    disabled_because: str | None = Field(description="Why it is not enabled, in words.")
    created_at: Time


class CreatedWebhook(WebhookModel):
    """A webhook with its secret. The secret is shown only once."""

    secret: Secret


class DeliveryState(WireModel):
    """The state of the deliveries to a receiver."""

    delivered: Annotated[int, From("stats.delivered")]
    failed_attempts: Annotated[int, From("stats.failed_attempts")]
    abandoned: Annotated[int, From("stats.dead")] = Field(description="Deliveries that failed in all attempts.")
    abandoned_kept: Annotated[int, From("given_up")] = Field(
        description="Abandoned deliveries that are kept and can be sent again."
    )
    waiting: int = Field(description="Deliveries in its queue.")
    collected: int = Field(description="Results collected for its next digest.")
    last_http_status: Annotated[int | None, From("stats.last_status")]
    last_error: Annotated[str | None, From("stats.last_error")]
    last_attempt_at: Annotated[Time | None, From("stats.last_attempt_us")]
    failing_since: Annotated[Time | None, From("circuit.since_us")] = Field(
        description="The first failure since the last success."
    )
    circuit: Literal["closed", "open"] = Field(
        description="Open after many failures in a row: deliveries wait, and one attempt at a time tries again."
    )
    next_probe_at: Annotated[Time | None, From("circuit.until_us")] = Field(
        description="With an open circuit: no attempt is made before this time."
    )

    @classmethod
    def of_health(cls, health: WebhookHealth) -> Self:
        return cls.copying(health, circuit="closed" if health.circuit.until_us is None else "open")


class WebhookDetail(DeliveryState, WebhookModel):
    """A webhook, and the state of its deliveries."""

    secrets_until: list[Time] = Field(
        description="Until when messages are also signed with each former secret, the latest first."
    )

    @classmethod
    def of(cls, webhook: RegisteredWebhook, health: WebhookHealth) -> Self:
        return cls(
            **vars(WebhookModel.from_domain(webhook)),
            **vars(DeliveryState.of_health(health)),
            secrets_until=[format_time(old.until_us) for old in webhook.retiring],
        )


class WebhookList(PartModel[WebhookDetail]):
    """All webhooks, the oldest first."""


class Rotation(WireModel):
    """The replacement of a webhook's secret."""

    secret: str | None = Field(None, description="The new secret, as at registration (default: generated).")
    grace_s: int = Field(
        86_400, ge=0, le=30 * 86_400, description="Seconds for which messages are also signed with the former secret."
    )


class PingResult(WireModel):
    """The result of a test delivery."""

    is_delivered: bool
    http_status: HttpStatus
    duration_s: float
    error: str | None = Field(description="Why the receiver did not accept the message.")

    @classmethod
    def from_domain(cls, reply: Reply) -> Self:
        return cls.copying(reply, is_delivered=reply.error is None)


class AttemptModel(WireModel):
    """One attempt of a delivery."""

    delivery_id: Annotated[str, From("delivery")] = Field(
        description="Id of the delivery, the same over all of its attempts."
    )
    kind: SentKind = Field(description="The kind of the delivered result, or digest.")
    result_id: Annotated[str, From("item")] = Field(description="Id of the delivered result; the webhook-id.")
    attempt: int = Field(description="Counts from 1.")
    verdict: Literal["delivered", "retry", "abandoned", "dropped"] = Field(
        description="delivered; retry: another attempt follows; abandoned: none follows; dropped: the receiver or the "
        "result no longer exists."
    )
    at: Time = Field(description="When the attempt ended.")
    http_status: HttpStatus
    duration_s: float
    error: str | None
    next_at: Time | None = Field(description="When the next attempt is due; an open circuit may put it off.")

    @classmethod
    def from_domain(cls, attempt: Mapping[str, Any]) -> Self:
        verdict = attempt["verdict"]
        return cls.copying(attempt, verdict="abandoned" if verdict == "dead" else verdict)


class AttemptList(PageModel[AttemptModel]):
    """A page of the attempts of a receiver's deliveries."""


class RedeliveryResult(WireModel):
    """The progress of sending abandoned deliveries again."""

    queued: int = Field(description="Deliveries queued by this call, without any that is being sent now.")
    remaining: int = Field(description="Deliveries since that time that remain for another call.")


class RedeliveryRequest(WireModel):
    """The deliveries to send again."""

    since: Moment | None = Field(None, description="Deliveries abandoned at this time or later; null: all.")
    limit: int = Field(1000, ge=1, le=1000, description="At most this number, the oldest first.")

    @property
    def since_us(self) -> int:
        """``since`` in microseconds UTC."""
        return 0 if self.since is None else parse_time(self.since)


def _once_each(kinds: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kinds))
