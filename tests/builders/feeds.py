"""For tests: mock brokers that librdkafka runs itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Producer


@dataclass(frozen=True, slots=True)
class MockBrokers:
    """Mock brokers within a client of this process; other processes can connect, too.

    ``address`` is ``host:port`` of one broker; a topic is created on its first record, with four partitions.
    """

    address: str

    def produce(self, topic: str, values: list[bytes | None], **fields: object) -> None:
        """Write records and wait for their delivery; ``fields`` are partition, headers and the like."""
        producer = Producer({"bootstrap.servers": self.address, "log_level": 0})
        for value in values:
            producer.produce(topic, value=value, **fields)  # type: ignore[arg-type]
        left = producer.flush(20)
        if left:
            raise RuntimeError(f"{left} records were not taken")


@contextmanager
def mock_brokers() -> Iterator[MockBrokers]:
    """One broker while the block runs."""
    host = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "replaced", "log_level": 0})
    facts = next(iter(host.list_topics(timeout=120).brokers.values()))
    yield MockBrokers(f"{facts.host}:{facts.port}")
    host.flush(0)
