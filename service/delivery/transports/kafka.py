"""The sink that produces results to a Kafka topic.

A record has the id of the result as its key. The producer is idempotent. Before the sink produces a record, it checks
the addresses of all brokers of the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from service.delivery.transports.sending import Item, SendFailed, Sending
from service.errors import WebhookRefused

_SERVERS = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_OPTIONS = {"security.protocol", "sasl.mechanism", "sasl.username", "compression.type", "client.id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSink:
    """A Kafka topic as a sink.

    Attributes:
        servers: Bootstrap brokers, each as ``host:port``, separated by commas.
        options: Settings of librdkafka, without the SASL password, which is the secret of the sink.
    """

    is_bulk: ClassVar[bool] = False

    servers: str
    topic: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"kafka://{self.servers}/{self.topic}"

    def check(self, sending: Sending) -> None:
        """Raise ``WebhookRefused`` if the topic, an option, or the address of a bootstrap broker is not permitted."""
        _client()
        if unknown := sorted(set(self.options) - _OPTIONS):
            permitted = ", ".join(sorted(_OPTIONS))
            raise WebhookRefused(
                f"the option {unknown[0][:100]!r} cannot be set; there are {permitted}", field="options"
            )
        if not _TOPIC.fullmatch(self.topic):
            raise WebhookRefused(f"{self.topic[:100]!r} is not the name of a topic", field="topic")
        for server in self.servers.split(","):
            if not _SERVERS.fullmatch(server.strip()):
                raise WebhookRefused(
                    f"{server.strip()[:100]!r} is not a broker such as kafka.example.org:9092", field="servers"
                )
            host, _, port = server.strip().rpartition(":")
            sending.addresses(host, int(port))

    def send(self, item: Item, sending: Sending) -> None:
        """Produce a record, and wait until all in-sync replicas have acknowledged it."""
        self.check(sending)
        client = _client()
        failures: list[str] = []
        try:
            producer = self._producer(client, item, sending)
            for broker in producer.list_topics(self.topic, timeout=sending.timeout_s).brokers.values():
                sending.addresses(broker.host, broker.port)
            producer.produce(
                self.topic,
                key=item.id.encode(),
                value=item.body if item.filled is None else item.filled,
                on_delivery=lambda error, _: failures.append(error.str()) if error is not None else None,
            )
            unsent = producer.flush(sending.timeout_s)
        except (client.KafkaException, BufferError) as error:
            reason = error.args[0].str() if isinstance(error, client.KafkaException) else str(error)
            raise SendFailed(f"the brokers did not take it: {reason}") from error
        if failures or unsent:
            raise SendFailed(f"the brokers did not take it: {failures[0] if failures else 'no answer in time'}")

    def _producer(self, client: Any, item: Item, sending: Sending) -> Any:
        settings = self._settings(item, sending.timeout_s)
        producer_key = item.sink, *(f"{member}={value}" for member, value in sorted(settings.items()))
        producer = sending.clients.get(producer_key)
        if producer is None:
            for stale in [client_key for client_key in list(sending.clients) if client_key[0] == item.sink]:
                sending.clients.pop(stale, None)
            producer = sending.clients.setdefault(producer_key, client.Producer(settings))
        return producer

    def _settings(self, item: Item, timeout_s: float) -> dict[str, Any]:
        credentials = {"sasl.password": item.secret} if item.secret else {}
        return {
            **self.options,
            **credentials,
            "bootstrap.servers": self.servers,
            "enable.idempotence": True,
            "message.timeout.ms": round(timeout_s * 1000),
            "log_level": 0,
        }


def _client() -> Any:
    try:
        import confluent_kafka  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise WebhookRefused(
            "a sink of the kind 'kafka' needs the package confluent-kafka: install forestall with its extra kafka",
            field="kind",
        ) from error
    return confluent_kafka
