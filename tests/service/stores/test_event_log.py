from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from service.errors import RecordFormatError, RegistryContended
from service.stores import DeadLetter, EventLog, Submission, pattern_draft
from streams import (
    LAYOUT_KEY,
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
from tests.builders.service import put_constraints

pytestmark = pytest.mark.redis


def events(count, keys=7):
    return [Event(id=f"e{n}", type="A", time_us=n // 3, key=f"k{n % keys}") for n in range(count)]


def submission(batch, *, key=None, token="t", dead_letters=(), fingerprint="f", keys=None):
    return Submission(
        stream="orders",
        batch=EventBatch.from_events(batch),
        dead_letters=dead_letters,
        answer={"accepted": len(batch)},
        fingerprint=fingerprint,
        token=token,
        idempotency_key=key,
        keys=keys or {},
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
    assert [record["reason"] for record in stores.dead_letters.page(10).items] == ["no key"]
    assert stores.dead_letters.counts() == [{"stream": "orders", "code": "event-rejected", "count": 1}]


def test_the_number_of_shards_is_settled_once(client):
    assert EventLog(client, 3).shards() == 3
    assert EventLog(client, 8).shards() == 3
    assert EventLog(client, 8).keys() == [log_key(0), log_key(1), log_key(2)]


def test_a_log_is_told_from_others_for_good(client):
    identity = EventLog(client, 3).layout.known().identity
    assert EventLog(client, 3).layout.known().identity == identity
    client.delete(LAYOUT_KEY)
    assert EventLog(client, 3).layout.known().identity != identity


def test_an_unknown_format_of_the_log_is_refused(client):
    client.hset(LAYOUT_KEY, mapping={"format": 3, "shards": 3})
    with pytest.raises(RecordFormatError, match="format 3"):
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
    stores.registry.put_pattern("orders", pattern_draft(name="p", text="PATTERN p EVENT A a"), 1)
    put_constraints(stores.registry, "orders", document, (), 2)
    stores.registry.pattern_operators.remove("p")
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


KEYS = {"customer": ("customer_id",), "place": ("where", "city")}


def sold(count):
    data = [{"customer_id": f"c{n % 3}", "where": {"city": n % 2}} if n % 5 else {} for n in range(count)]
    return [Event(id=f"e{n}", type="A", time_us=n, key=f"k{n % 7}", data=data[n]) for n in range(count)]


def routed(log):
    """What was appended: by route and shard, the ids of the events."""
    found: dict[tuple[str, int], list[tuple[str, str]]] = {}
    for shard in range(log.shards()):
        for entry in log.read_range(shard):
            if entry.kind == RecordKind.EVENTS:
                ids = [(event.key, event.id) for event in EventBatch.from_bytes(entry.body).to_events()]
                found.setdefault((entry.route, shard), []).extend(ids)
    return found


def use(stores, name, route):
    stores.registry.put_pattern("orders", pattern_draft(name=name, text="PATTERN p EVENT A a", route=route), 1)


def test_events_are_appended_once_per_key_in_use(stores):
    posted = sold(20)
    use(stores, "p", "customer")
    stores.log.append_events(submission(posted, keys=KEYS))
    found = routed(stores.log)
    assert {route for route, _ in found} == {"", "customer"}
    for (route, shard), pairs in found.items():
        assert all(shard_of(key_hash(key), 3) == shard for key, _ in pairs)
        assert not route or {key for key, _ in pairs} <= {"c0", "c1", "c2"}
    customers = sorted(name for (route, _), pairs in found.items() if route for _, name in pairs)
    assert customers == sorted(event.id for event in posted if event.data)


def test_an_event_of_a_traced_request_is_remembered_where_its_correlation_key_is(stores):
    use(stores, "p", "customer")
    traced = replace(submission(sold(20), keys=KEYS), context=f"00-{1:032x}-{1:016x}-01")
    receipt = stores.log.append_events(traced)
    found = stores.request_contexts.find("orders", [f"e{n}" for n in range(20)])
    assert {event: one.shard for event, one in found.items()} == {
        f"e{n}": shard_of(key_hash(f"k{n % 7}"), 3) for n in range(20)
    }
    assert {(one.shard, one.position) for one in found.values()} & set(receipt.positions.items()) != set()


def test_a_key_that_comes_into_use_meanwhile_is_not_missed(stores):
    stores.log.append_events(submission(sold(4), keys=KEYS, token="a"))
    use(stores, "p", "customer")
    stores.log.append_events(submission(sold(4), keys=KEYS, token="b"))
    use(stores, "q", "place")
    stores.log.append_events(submission(sold(4), keys=KEYS, token="c"))
    stores.registry.pattern_operators.remove("p")
    stores.log.append_events(submission(sold(4), keys=KEYS, token="d"))
    counts = dict.fromkeys(("", "customer", "place"), 0)
    for (route, _), pairs in routed(stores.log).items():
        counts[route] += len(pairs)
    assert counts == {"": 16, "customer": 6, "place": 6}


def test_a_race_of_a_pattern_and_events_leaves_no_gap(stores):
    """Behind the control record every event is on the route, and before it none."""

    def send(number):
        renamed = [replace(event, id=f"{number}-{event.id}") for event in sold(9)]
        stores.log.append_events(submission(renamed, keys=KEYS, token=f"t{number}"))

    with ThreadPoolExecutor(4) as pool:
        sending = [pool.submit(send, number) for number in range(40)]
        for number in range(1, 9):
            if number % 2:
                use(stores, "p", "customer")
            else:
                stores.registry.pattern_operators.remove("p")
        for one in sending:
            one.result()
    wanted, found = [], []
    for shard in range(3):
        is_used = False
        for entry in stores.log.read_range(shard):
            if entry.kind != RecordKind.EVENTS:
                is_used = entry.kind == RecordKind.PATTERN_ON
                continue
            events = EventBatch.from_bytes(entry.body).to_events()
            assert is_used or not entry.route
            if entry.route:
                found += [event.id for event in events]
            elif is_used:
                wanted += [event.id for event in events if event.data]
    assert sorted(found) == sorted(wanted)


def test_routes_that_keep_changing_are_told(stores):
    append = stores.log._append_events
    names = iter("abcdefghijklmnopqrstuvwxyz")

    def restless(**given):
        use(stores, "p", next(names))
        return append(**given)

    stores.log._append_events = restless
    keys = {name: (name,) for name in "abcdefghijklmnopqrstuvwxyz"}
    with pytest.raises(RegistryContended) as caught:
        stores.log.append_events(submission(sold(2), keys=keys))
    assert caught.value.is_retryable
    assert routed(stores.log) == {}


def test_a_key_that_the_declaration_does_not_have_is_told(stores):
    use(stores, "p", "region")
    with pytest.raises(RecordFormatError, match="use the further keys region"):
        stores.log.append_events(submission(sold(2), keys=KEYS))
