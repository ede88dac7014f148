from concurrent.futures import ThreadPoolExecutor

import pytest

from service.errors import RecordFormatError
from service.stores import DeadLetter, EventLog, Submission
from service.stores.event_log import LAYOUT_KEY
from streams import (
    ConstraintsOn,
    Event,
    EventBatch,
    PatternOff,
    PatternOn,
    RecordKind,
    StreamDeclaration,
    StreamOn,
    decode_control,
    key_hash,
    log_key,
    shard_of,
)

pytestmark = pytest.mark.redis


def events(count, keys=7):
    return [Event(id=f"e{n}", type="A", time_us=n // 3, key=f"k{n % keys}") for n in range(count)]


def submission(batch, *, key=None, token="t", dead_letters=(), fingerprint="f"):
    return Submission(
        stream="orders",
        batch=EventBatch.from_events(batch),
        dead_letters=dead_letters,
        answer={"accepted": len(batch)},
        fingerprint=fingerprint,
        token=token,
        idempotency_key=key,
    )


def read(log):
    return {
        shard: [event for entry in log.read_range(shard) for event in EventBatch.from_bytes(entry.body).to_events()]
        for shard in range(log.shards())
    }


def test_every_event_lands_in_the_shard_of_its_key_in_order(stores):
    posted = events(50)
    receipt = stores.log.append_events(submission(posted))
    found = read(stores.log)
    assert found == {shard: [e for e in posted if shard_of(key_hash(e.key), 3) == shard] for shard in range(3)}
    assert set(receipt.positions) == {shard for shard, part in found.items() if part}


def test_ties_of_time_keep_their_order():
    batch = EventBatch.from_events([Event(id=f"e{n}", type="A", time_us=5, key="k") for n in range(9)])
    (part,) = batch.split_by_shard(4).values()
    assert [event.id for event in part.to_events()] == [f"e{n}" for n in range(9)]


def test_a_shard_without_events_gets_no_entry(stores):
    stores.log.append_events(submission([Event(id="e", type="A", time_us=0, key="k")]))
    assert sum(len(list(stores.log.read_range(shard))) for shard in range(3)) == 1


def test_a_key_is_taken_once_and_answered_as_before(stores):
    first = stores.log.append_events(submission(events(3), key="batch-1", token="a"))
    again = stores.log.append_events(submission(events(3), key="batch-1", token="b"))
    assert first.earlier is None
    assert again.earlier == {"accepted": 3}
    assert again.positions == {}
    assert sum(map(len, read(stores.log).values())) == 3


def test_a_key_is_taken_once_however_many_send_it_at_once(stores):
    with ThreadPoolExecutor(8) as pool:
        receipts = list(
            pool.map(
                lambda number: stores.log.append_events(submission(events(9), key="k", token=str(number))), range(32)
            )
        )
    assert sum(receipt.earlier is None for receipt in receipts) == 1
    assert sum(map(len, read(stores.log).values())) == 9


def test_a_key_belongs_to_its_stream(stores, client):
    stores.log.append_events(submission(events(1), key="k"))
    assert client.pttl("forestall:idempotency:orders:k") > 86_000_000


def test_the_same_call_sent_twice_by_the_client_library_is_taken_once(stores):
    stores.log.append_events(submission(events(3), token="same"))
    stores.log.append_events(submission(events(3), token="same"))
    assert sum(map(len, read(stores.log).values())) == 3


def test_dead_letters_come_with_their_batch_and_once(stores):
    letter = DeadLetter.of(id="d", stream="orders", code="event-rejected", reason="no key")
    for token in ("a", "b"):
        stores.log.append_events(submission(events(1), key="k", token=token, dead_letters=[letter]))
    assert [record["reason"] for record in stores.dead_letters.recent(10)] == ["no key"]
    assert stores.dead_letters.counts() == [{"stream": "orders", "code": "event-rejected", "count": 1}]


def test_the_number_of_shards_is_settled_once(client):
    assert EventLog(client, 3).shards() == 3
    assert EventLog(client, 8).shards() == 3
    assert EventLog(client, 8).keys() == [log_key(0), log_key(1), log_key(2)]


def test_an_unknown_format_of_the_log_is_refused(client):
    client.hset(LAYOUT_KEY, mapping={"format": 2, "shards": 3})
    with pytest.raises(RecordFormatError, match="format 2"):
        EventLog(client, 3).shards()


def test_a_range_is_read_in_pages_between_positions(stores):
    for number in range(300):
        stores.log.append_events(submission([Event(id="e", type="A", time_us=0, key="k")], token=str(number)))
    shard = shard_of(key_hash("k"), 3)
    positions = [entry.position for entry in stores.log.read_range(shard)]
    assert len(positions) == 300
    inside = stores.log.read_range(shard, after=positions[9], until=positions[19])
    assert [entry.position for entry in inside] == positions[10:20]


def test_the_pipeline_reads_every_control_record(stores):
    declaration = StreamDeclaration(name="orders", key="data.id", event_types=("A", "Z"), end_events=("Z",))
    document = {"constraints": [{"prior": ["A", "Z"]}], "end": ["Z"]}
    stores.registry.declare_stream(declaration)
    stores.registry.put_pattern("orders", "p", "PATTERN p EVENT A a", 1)
    stores.registry.put_constraints("orders", document, (), 2)
    stores.registry.remove_pattern("p")
    expected = [
        StreamOn(declaration),
        PatternOn(name="p", version=1, text="PATTERN p EVENT A a"),
        ConstraintsOn(name="orders", version=1, document=document),
        PatternOff("p"),
    ]
    for shard in range(3):
        entries = list(stores.log.read_range(shard))
        assert [decode_control(entry.kind, entry.body) for entry in entries] == expected
        assert {entry.stream for entry in entries} == {"orders"}
        assert entries[0].kind is RecordKind.STREAM_ON
