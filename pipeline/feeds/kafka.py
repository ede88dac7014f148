"""Kafka topics as a streaming source of Spark: the format ``forestall_kafka``.

An offset of the source holds the next offset of each partition of the topics. Each Spark task reads one range of a
partition with a plain consumer, which is assigned the partition. The consumer joins no group and commits nothing to the
brokers, because only the checkpoint records the progress. Records of aborted transactions are left out. A record's
place in its micro-batch follows from its offset. So if a compaction removes records between two readings, the places of
other records do not change.

The checkpoint may lack a partition, for example because a topic has grown. Then the feed first records the offset of
the partition's first record, and reads the partition from the next micro-batch on. A repeated micro-batch thus does not
depend on what the brokers removed meanwhile.

``confluent-kafka`` is imported only when a client is created, because it is an optional extra.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pipeline.errors import KafkaClientMissing, KafkaGap, KafkaUnreachable, SourceOptionError
from pipeline.feeds.kafka_messages import read_message, read_plain
from pipeline.feeds.rows import FEED_DDL, FeedRow, to_batch
from streams import KeyForm
from streams.readers import ReaderOptions

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

Begin: TypeAlias = Literal["earliest", "latest"]
Offset: TypeAlias = dict[str, int]

_POLL_S = 0.5
_PAGE_RECORDS = 1_000
_BATCH_BYTES = 4_000_000
_OWN_SETTINGS = {
    "bootstrap.servers": "servers are named by --servers",
    "enable.auto.commit": "the feed's checkpoint says how far it is",
    "enable.auto.offset.store": "the feed's checkpoint says how far it is",
    "auto.offset.reset": "where a new feed begins is said by --from, and a gap later is an error",
    "enable.partition.eof": "the feed needs it",
    "isolation.level": "records of open transactions would be read before they are decided",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions:
    """Options of a Kafka feed.

    Attributes:
        servers: Bootstrap brokers, ``host:port``, joined by commas.
        begin: Where a new feed begins: at the first available record, or after the last one.
        settings: Further settings of librdkafka, such as ``security.protocol``. They may have passwords and are not
            logged.
        max_rows: The most records in one micro-batch, shared among the partitions.
        max_row_bytes: The largest size of a record. A larger record becomes a row with a fault.
        mapping: How plain JSON is read. CloudEvents are not affected. None for the stream's mapping.
        key: Path of the stream's correlation key, if there is a mapping. It may depend on the event type.
    """

    servers: str
    topics: tuple[str, ...]
    begin: Begin = "earliest"
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_rows: int = 10_000
    max_row_bytes: int = 10 * 1024 * 1024
    timeout_s: float = 30.0
    mapping: ReaderOptions | None = None
    key: KeyForm = "subject"

    def __post_init__(self) -> None:
        if not self.servers or not self.topics or not all(self.topics):
            raise SourceOptionError("a Kafka feed needs servers, such as broker:9092, and at least one topic")
        if self.max_rows < 1:
            raise SourceOptionError(f"option max_rows is {self.max_rows}: at least 1", option="max_rows")
        for name, why in _OWN_SETTINGS.items():
            if name in self.settings:
                raise SourceOptionError(f"the setting {name} cannot be given: {why}", option=name)


@dataclass(frozen=True)
class KafkaPart(InputPartition):
    """The input of one Spark task: the records of a partition from offset ``start`` up to ``end`` (exclusive)."""

    topic: str
    partition: int
    start: int
    end: int
    place: int


class KafkaSource(DataSource):
    """Spark's data source ``forestall_kafka``, for Kafka topics. Its options are those of ``KafkaOptions``."""

    source_options: ClassVar[KafkaOptions]

    @classmethod
    def name(cls) -> str:
        return "forestall_kafka"

    def schema(self) -> str:
        return FEED_DDL

    def streamReader(self, schema: StructType) -> KafkaReader:
        return KafkaReader(self.source_options)


class KafkaReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches over all partitions of a feed's topics, and reads their records."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._consumer: Consumer | None = None
        self._target: Offset | None = None

    def initialOffset(self) -> dict[str, int]:
        ends = self._ends()
        return {name: high if self._options.begin == "latest" else low for name, (low, high) in ends.items()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.max_rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the end of the next micro-batch.

        If a partition is new, the end is the offset of its first record. Raise ``KafkaUnreachable`` if the brokers do
        not answer, and ``KafkaGap`` if records that must be read are gone.
        """
        ends = self._ends()
        for name, begin in start.items():
            _check_range(name, begin, ends.get(name))
        highs = {name: high if name in start else low for name, (low, high) in ends.items()}
        start = {**highs, **start}
        if self._target is not None:
            highs = {name: max(start[name], min(high, self._target.get(name, 0))) for name, high in highs.items()}
        return _shared_out(start, highs, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {name: high for name, (_, high) in self._ends().items()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return one Spark partition per topic partition with new records."""
        parts = []
        place = 0
        for name in sorted(end, key=_order):
            begin, until = start.get(name, end[name]), end[name]
            if begin < until:
                topic, partition = _order(name)
                parts.append(KafkaPart(topic, partition, begin, until, place))
                place += until - begin
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range of one topic partition, in the order of offsets and in columns of ``FEED_DDL``.

        Raise ``KafkaGap`` if the range begins before the first remaining record.
        """
        return _read_part(cast(KafkaPart, partition), self._options)

    def stop(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _ends(self) -> dict[str, tuple[int, int]]:
        if self._consumer is None:
            self._consumer = connect(self._options)
        return offsets_of(self._consumer, self._options)


def connect(options: KafkaOptions) -> Consumer:
    """Create a consumer without assigned partitions.

    Raise ``KafkaClientMissing`` if the package is not installed, and ``SourceOptionError`` for a bad setting.
    """
    try:
        import confluent_kafka  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise KafkaClientMissing(
            "a Kafka feed needs the package confluent-kafka: install forestall with its extra kafka"
        ) from error
    settings = {
        "group.id": "forestall-feed",
        **options.settings,
        "bootstrap.servers": options.servers,
        "enable.auto.commit": "false",
        "auto.offset.reset": "error",
        "enable.partition.eof": "true",
        "isolation.level": "read_committed",
    }
    try:
        return confluent_kafka.Consumer(settings)
    except confluent_kafka.KafkaException as error:
        raise SourceOptionError(f"Kafka's client refuses its settings: {error.args[0].str()}") from error


def cluster_of(options: KafkaOptions) -> str:
    """Return the id of the brokers' cluster. Without an id, return the brokers' addresses.

    The errors are those of ``connect`` and ``offsets_of``.
    """
    consumer = connect(options)
    try:
        offsets_of(consumer, options)
        return cast("str | None", consumer.list_topics(timeout=options.timeout_s).cluster_id) or options.servers
    finally:
        consumer.close()


def offsets_of(consumer: Consumer, options: KafkaOptions) -> dict[str, tuple[int, int]]:
    """Return the first and end offset of every partition by ``topic:partition``.

    The end offset follows the last record. Raise ``KafkaUnreachable`` if the brokers do not answer, or if a topic does
    not exist.
    """
    from confluent_kafka import KafkaException, TopicPartition  # noqa: PLC0415 - an optional extra

    offsets: dict[str, tuple[int, int]] = {}
    try:
        for topic in options.topics:
            facts = consumer.list_topics(topic, timeout=options.timeout_s).topics[topic]
            if facts.error is not None or not facts.partitions:
                why = facts.error.str() if facts.error is not None else "it has no partitions"
                raise KafkaUnreachable(f"topic {topic!r} on {options.servers} cannot be read: {why}", topic=topic)
            for partition in facts.partitions:
                where = TopicPartition(topic, partition)
                offsets[f"{topic}:{partition}"] = consumer.get_watermark_offsets(where, timeout=options.timeout_s)
    except KafkaException as error:
        raise _unreachable(options, error.args[0].str()) from error
    return offsets


def _read_part(part: KafkaPart, options: KafkaOptions) -> Iterator[pa.RecordBatch]:
    rows: list[FeedRow] = []
    size = 0
    for message in _records(part, options):
        body, fault = read_message(message.value(), _headers(message), options.max_row_bytes)
        offset = cast(int, message.offset())
        if options.mapping is not None and fault is None:
            place = f"{part.topic}:{part.partition}:{offset}"
            body, fault = read_plain(body, place, options.mapping, options.key)
        origin: dict[str, Any] = {"topic": part.topic, "partition": part.partition, "offset": offset}
        rows.append(FeedRow(place=part.place + offset - part.start, body=body, origin=origin, fault=fault))
        size += len(body)
        if len(rows) >= _PAGE_RECORDS or size >= _BATCH_BYTES:
            yield to_batch(rows)
            rows, size = [], 0
    if rows:
        yield to_batch(rows)


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    headers = cast("list[tuple[str, bytes | str | None]]", message.headers() or [])
    return [(name, content.encode() if isinstance(content, str) else content) for name, content in headers]


def _records(part: KafkaPart, options: KafkaOptions) -> Iterator[Message]:
    """Yield the records of a range. If the last offsets have no records, the partition's end ends the range."""
    from confluent_kafka import TopicPartition  # noqa: PLC0415 - an optional extra

    consumer = connect(options)
    try:
        consumer.assign([TopicPartition(part.topic, part.partition, part.start)])
        silent_since = time.monotonic()
        while True:
            messages = consumer.consume(_PAGE_RECORDS, timeout=_POLL_S)
            if not messages and time.monotonic() > silent_since + options.timeout_s:
                raise _unreachable(options, f"no record of {part.topic}:{part.partition} for {options.timeout_s:.0f} s")
            for message in messages:
                error = message.error()
                if error is not None:
                    if _is_end(error, part, options) and cast(int, message.offset()) >= part.end:
                        return  # before ``part.end``: only the end of decided transactions, more records follow
                    continue
                silent_since = time.monotonic()
                offset = cast(int, message.offset())
                if offset >= part.end:
                    return
                yield message
                if offset == part.end - 1:
                    return
    finally:
        consumer.close()


def _is_end(error: KafkaError, part: KafkaPart, options: KafkaOptions) -> bool:
    from confluent_kafka import KafkaError as Codes  # noqa: PLC0415 - an optional extra

    if error.code() == Codes._PARTITION_EOF:
        return True
    if error.code() in (Codes.OFFSET_OUT_OF_RANGE, Codes._AUTO_OFFSET_RESET):
        raise KafkaGap(
            f"{part.topic}:{part.partition} no longer has the offset {part.start}: {error.str()}; {_GAP_ADVICE}"
        )
    if error.fatal() or not (error.retriable() or error.code() in (Codes._TRANSPORT, Codes._ALL_BROKERS_DOWN)):
        raise _unreachable(options, error.str())
    return False


_GAP_ADVICE = (
    "events were removed before the feed read them; keep records for longer, and start a feed of another name to "
    "continue without them"
)


def _check_range(name: str, begin: int, ends: tuple[int, int] | None) -> None:
    if ends is None:
        raise KafkaGap(f"{name} is in the feed's checkpoint, but no longer on the brokers; {_GAP_ADVICE}")
    low, high = ends
    if not low <= begin <= high:
        raise KafkaGap(f"{name} should be read from offset {begin}, but has offsets {low} to {high}; {_GAP_ADVICE}")


def _shared_out(start: Offset, highs: Offset, max_rows: int | None) -> Offset:
    """Return an end offset for each partition: a fair share of ``max_rows`` records, but at most up to ``highs``."""
    if max_rows is None:
        return {**start, **highs}
    ends = dict(start)
    waiting = sorted((name for name in highs if highs[name] > start[name]), key=lambda name: highs[name] - start[name])
    remaining = max_rows
    for number, name in enumerate(waiting):
        share = -(-remaining // (len(waiting) - number))
        granted = min(highs[name] - start[name], share, remaining)
        ends[name] += granted
        remaining -= granted
    return ends


def _order(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition(":")
    return topic, int(partition)


def _unreachable(options: KafkaOptions, why: str) -> KafkaUnreachable:
    return KafkaUnreachable(f"the Kafka brokers {options.servers} do not answer as they should: {why}")
