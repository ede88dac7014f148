"""Sinks on the wire: receivers of results other than webhooks."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field
from pydantic_core import PydanticUndefined

from api.schemas.webhooks import DeliveredKind, DeliveryState, Digest, NewReceiver, ReceiverChanges, Template, as_draft
from api.wire import From, PartModel, Text, Time, WireModel
from service import RegisteredWebhook, Severity, WebhookDraft, WebhookHealth

_Path: TypeAlias = Annotated[
    str, Field(description="Folder for the files, relative to the folder of all sinks (FORESTALL_WEBHOOKS__FOLDER).")
]
_Security: TypeAlias = Annotated[
    Literal["tls", "starttls"], Field(description="TLS from the start, or after STARTTLS.")
]
_Options: TypeAlias = Annotated[
    dict[str, str],
    Field(description="Settings of librdkafka: security.protocol, sasl.mechanism, sasl.username, compression.type, "
    "client.id."),
]  # fmt: skip
_SINK_MEMBERS = ("path", "host", "port", "security", "user", "sender", "recipients", "servers", "topic", "options")


class _NewSink(NewReceiver):
    def to_domain(self) -> WebhookDraft:
        members = self.model_dump(include={"kind", *_SINK_MEMBERS})
        return as_draft(self, sink=members)


class NewParquetSink(_NewSink):
    """A sink that writes a folder of Parquet files, by kind of result and day."""

    kind: Literal["parquet"]
    path: _Path


class NewEmailSink(_NewSink):
    """A sink that sends e-mails."""

    kind: Literal["email"]
    host: str = Field(description="The mail server.")
    port: int = Field(465, ge=1, le=65_535)
    security: _Security = "tls"
    user: str | None = Field(None, description="Name for the login; null: none.")
    secret: str | None = Field(None, max_length=1_000, description="Password for the login; never shown.")
    sender: str = Field(description="Address that the mail comes from.")
    recipients: list[str] = Field(description="Addresses of the recipients, 1 to 20.")
    template: Template = None


class NewKafkaSink(_NewSink):
    """A sink that writes to a Kafka topic."""

    kind: Literal["kafka"]
    servers: str = Field(description="Bootstrap servers as host:port, separated by commas.")
    topic: str
    options: _Options = Field({}, validate_default=False)
    secret: str | None = Field(None, max_length=1_000, description="Password of SASL; never shown.")
    template: Template = None


NewSink: TypeAlias = Annotated[NewParquetSink | NewEmailSink | NewKafkaSink, Field(discriminator="kind")]


class SinkChanges(ReceiverChanges):
    """Changes of a sink. Omitted members do not change, null resets a member, and the kind cannot be changed."""

    created = (NewParquetSink, NewEmailSink, NewKafkaSink)
    defaults = MappingProxyType({"secret": PydanticUndefined})

    secret: str | None = Field(None, max_length=1_000, description="Password.")
    path: _Path | None = None
    host: str | None = None
    port: int | None = Field(None, ge=1, le=65_535)
    security: _Security | None = None
    user: str | None = Field(None, description="Null: no login.")
    sender: str | None = None
    recipients: list[str] | None = None
    servers: str | None = None
    topic: str | None = None
    options: _Options | None = None

    def to_domain(self) -> dict[str, Any]:
        """Return the changes by name of the sink's attribute."""
        changes = super().to_domain()
        if sink := {name: changes.pop(name) for name in _SINK_MEMBERS if name in changes}:
            changes["sink"] = sink
        return changes


class SinkModel(WireModel):
    """A registered sink, with the members of its kind."""

    id: str
    name: Text
    kind: Literal["parquet", "email", "kafka"]
    address: Annotated[str, From("url")] = Field(description="Where it sends, for people.")
    stream: str | None
    pattern: str | None
    key: str | None
    min_severity: Severity | None
    kinds: list[DeliveredKind] = Field(description="The kinds of results that are sent.")
    description: str
    template: dict[str, Any] | None
    digest: Digest = None
    enabled: Annotated[bool, From("is_enabled")] = Field(description="False: nothing is sent; queued deliveries wait.")
    disabled_because: str | None = Field(description="Why it is not enabled, in words.")
    created_at: Time
    path: str | None = None
    host: str | None = None
    port: int | None = None
    security: _Security | None = None
    user: str | None = None
    sender: str | None = None
    recipients: list[str] | None = None
    servers: str | None = None
    topic: str | None = None
    options: dict[str, str] | None = None

    @classmethod
    def from_domain(cls, sink: RegisteredWebhook) -> Self:
        """Convert a sink, without its password."""
        return cls.copying(sink, **(sink.sink or {}))


class SinkDetail(SinkModel, DeliveryState):
    """A sink, and the state of its deliveries."""

    @classmethod
    def of(cls, sink: RegisteredWebhook, health: WebhookHealth) -> Self:
        plain = SinkModel.from_domain(sink)
        members = {name: getattr(plain, name) for name in plain.model_fields_set}
        return cls(**members, **vars(DeliveryState.of_health(health)))


class SinkList(PartModel[SinkDetail]):
    """All sinks, the oldest first."""
