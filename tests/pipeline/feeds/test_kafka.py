import sys

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from pipeline.errors import KafkaClientMissing, KafkaGap, KafkaUnreachable, SourceOptionError
from pipeline.feeds.kafka import KafkaOptions, KafkaReader, KafkaSource, cluster_of, connect
from pipeline.feeds.rows import from_table
from pipeline.sources.options import with_options


def values(count, first=0):
    return [b'{"id":"e%d"}' % number for number in range(first, first + count)]


def options_of(brokers, **changes):
    usual = {"servers": brokers.address, "topics": ("t",), "timeout_s": 10.0, "settings": {"log_level": "0"}}
    return KafkaOptions(**{**usual, **changes})


@pytest.fixture
def reader(brokers):
    """Of a topic with 5 records in partition 0 and 2 in partition 3."""
    brokers.produce("t", values(5), partition=0)
    brokers.produce("t", values(2, 5), partition=3)
    reader = KafkaReader(options_of(brokers))
    yield reader
    reader.stop()


def read(reader, start, end):
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return from_table(pa.Table.from_batches(batches)) if batches else []


def all_now(reader, start):
    return reader.latestOffset(start, ReadAllAvailable())


def test_every_record_is_read_once_with_its_origin(reader):
    start = reader.initialOffset()
    assert start == {"t:0": 0, "t:1": 0, "t:2": 0, "t:3": 0}
    end = all_now(reader, start)
    assert end == {"t:0": 5, "t:1": 0, "t:2": 0, "t:3": 2}
    rows = read(reader, start, end)
    assert [row.body for row in rows] == values(7)
    assert [row.place for row in rows] == list(range(7))
    assert rows[5].origin == {"topic": "t", "partition": 3, "offset": 0}
    assert all_now(reader, end) == end
    assert reader.partitions(end, end) == []


def test_a_range_always_reads_the_same(reader, brokers):
    start, end = {"t:0": 1, "t:1": 0, "t:2": 0, "t:3": 0}, {"t:0": 3, "t:1": 0, "t:2": 0, "t:3": 2}
    first = read(reader, start, end)
    brokers.produce("t", values(9, 90), partition=0)
    assert read(reader, start, end) == first
    assert [(row.place, row.origin["offset"]) for row in first] == [(0, 1), (1, 2), (2, 0), (3, 1)]


def test_a_micro_batch_is_shared_out_to_the_partitions(reader):
    offset = reader.initialOffset()
    found = []
    while (end := reader.latestOffset(offset, ReadMaxRows(3))) != offset:
        found.append((end["t:0"], end["t:3"]))
        offset = end
    assert found == [(1, 2), (4, 2), (5, 2)]


def test_a_new_feed_may_begin_at_the_end(reader, brokers):
    late = KafkaReader(options_of(brokers, begin="latest"))
    start = late.initialOffset()
    assert (start["t:0"], start["t:3"]) == (5, 2)
    brokers.produce("t", [b"new"], partition=0)
    assert [row.body for row in read(late, start, all_now(late, start))] == [b"new"]
    late.stop()


def test_a_bounded_run_takes_what_was_there_at_its_start(reader, brokers):
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    brokers.produce("t", values(3), partition=0)
    end = all_now(reader, start)
    assert (end["t:0"], end["t:3"]) == (5, 2)
    assert all_now(reader, end) == end


def test_partitions_that_the_checkpoint_does_not_know_begin_at_their_first_record(reader):
    known = all_now(reader, {"t:0": 5})
    assert known == {"t:0": 5, "t:1": 0, "t:2": 0, "t:3": 0}
    assert reader.partitions({"t:0": 5}, known) == []
    end = all_now(reader, known)
    assert (end["t:0"], end["t:3"]) == (5, 2)
    assert len(read(reader, known, end)) == 2


def test_a_new_partition_begins_at_the_first_record_that_the_brokers_still_have(brokers):
    brokers.produce("t", [b"old" * 300_000] * 7 + [b"new"], partition=2)  # the mock brokers keep 5 MB of a partition
    reader = KafkaReader(options_of(brokers))
    low = reader.initialOffset()["t:2"]
    assert 0 < low < 8
    start = {"t:0": 0, "t:1": 0, "t:3": 0}
    known = reader.latestOffset(start, ReadMaxRows(100))
    assert known == {**start, "t:2": low}
    assert reader.partitions(start, known) == []
    rows = read(reader, known, reader.latestOffset(known, ReadMaxRows(100)))
    assert [row.origin["offset"] for row in rows] == list(range(low, 8))
    assert (rows[0].place, rows[-1].body) == (0, b"new")
    reader.stop()


def test_a_bounded_run_reads_no_new_partition_beyond_what_was_there_at_its_start(reader, brokers):
    reader.prepareForTriggerAvailableNow()
    brokers.produce("t", values(3), partition=3)
    known = all_now(reader, {"t:0": 5})
    assert all_now(reader, known) == {"t:0": 5, "t:1": 0, "t:2": 0, "t:3": 2}


def test_what_cannot_be_an_event_has_a_fault(reader, brokers):
    brokers.produce("t", [None], partition=1)
    (row,) = read(reader, {"t:1": 0}, {"t:1": 1})
    assert "tombstone" in row.fault


@pytest.mark.parametrize(
    ("start", "reason"), [({"t:0": 9}, "from offset 9"), ({"gone:0": 0}, "no longer on the brokers")]
)
def test_records_that_are_gone_are_an_error(reader, start, reason):
    with pytest.raises(KafkaGap, match=reason):
        all_now(reader, start)


def test_a_range_that_is_gone_is_an_error_when_it_is_read(reader):
    with pytest.raises(KafkaGap, match=r"t:0 no longer has the offset 50"):
        read(reader, {"t:0": 50}, {"t:0": 60})


def test_a_range_that_does_not_come_to_its_end_is_waited_for_and_then_an_error(brokers, reader):
    impatient = KafkaReader(options_of(brokers, timeout_s=1.0))
    with pytest.raises(KafkaUnreachable, match="no record of t:0 for 1 s"):
        read(impatient, {"t:0": 4}, {"t:0": 9})


def test_a_missing_topic_is_named(brokers, reader):
    with pytest.raises(KafkaUnreachable, match=r"topic 'nope'.*Unknown topic"):
        KafkaReader(options_of(brokers, topics=("nope",))).initialOffset()


def test_a_cluster_has_an_id(brokers, reader):
    assert cluster_of(options_of(brokers)).startswith("mockCluster")
    with pytest.raises(KafkaUnreachable):
        cluster_of(options_of(brokers, topics=("nope",)))


def test_silent_brokers_are_named():
    silent = KafkaOptions(servers="127.0.0.1:1", topics=("t",), timeout_s=1.0, settings={"log_level": "0"})
    with pytest.raises(KafkaUnreachable, match=r"127\.0\.0\.1:1 do not answer"):
        KafkaReader(silent).initialOffset()


def test_a_source_takes_its_options_to_other_processes_and_secrets_are_not_shown():
    options = KafkaOptions(servers="a:1", topics=("t", "u"), begin="latest", settings={"sasl.password": "geheim"})
    source = cloudpickle.loads(cloudpickle.dumps(with_options(KafkaSource, options)))
    assert source.source_options == options
    assert "geheim" not in repr(options)
    assert source({}).schema().startswith("place BIGINT")


@pytest.mark.parametrize(
    "change",
    [{"servers": ""}, {"topics": ()}, {"max_rows": 0}, {"settings": {"isolation.level": "read_uncommitted"}}],
)
def test_impossible_options_are_refused(change):
    with pytest.raises(SourceOptionError):
        KafkaOptions(**{"servers": "a:1", "topics": ("t",), **change})


def test_settings_that_the_client_does_not_know_are_refused():
    with pytest.raises(SourceOptionError, match=r"no\.such\.setting"):
        connect(KafkaOptions(servers="a:1", topics=("t",), settings={"no.such.setting": "1"}))


def test_a_missing_client_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(KafkaClientMissing, match="extra kafka"):
        connect(KafkaOptions(servers="a:1", topics=("t",)))
