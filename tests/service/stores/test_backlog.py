"""The counters of the log, its limits, and what they refuse."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from service.errors import LogFull
from service.settings import Limits
from service.stores import EventLog, Submission, pattern_draft
from service.stores.log.backlog import MARKS_KEY, Volume
from streams import APPENDED_KEY, Event, EventBatch, StreamDeclaration, key_hash, log_key, shard_of
from tests.builders.service import stats_row

pytestmark = pytest.mark.redis


def batch(count, name="e"):
    return EventBatch.from_events([Event(id=f"{name}{n}", type="A", time_us=n, key=f"k{n % 7}") for n in range(count)])


def submission(events, token, *, key=None, dead_letters=()):
    return Submission(
        stream="orders",
        batch=events,
        dead_letters=dead_letters,
        answer={"accepted": len(events)},
        fingerprint="f",
        token=token,
        idempotency_key=key,
    )


def logged(log):
    return [
        event.id
        for shard in range(log.shards())
        for entry in log.read_range(shard)
        for event in EventBatch.from_bytes(entry.body).to_events()
    ]


def drain(stores, log):
    """Let every shard be matched to its end, once."""
    ends = {shard: [entry.position for entry in log.read_range(shard)][-1:] for shard in range(log.shards())}
    rows = [stats_row(shard, end[0]) for shard, end in ends.items() if end]
    return stores.pipeline_status.note(rows)


def test_what_is_appended_is_counted(stores):
    parts = batch(50).split_by_shard(3)
    stores.log.append_events(submission(batch(50), "a"))
    size = sum(len(part.to_bytes()) for part in parts.values())
    assert stores.backlog.read().appended == Volume(entries=len(parts), events=50, bytes=size)
    assert stores.backlog.read().waiting == stores.backlog.read().appended


def test_a_batch_that_is_taken_once_is_counted_once(stores):
    for token in "abc":
        stores.log.append_events(submission(batch(9), token, key="k"))
    assert stores.backlog.read().appended.events == 9


def test_what_would_go_beyond_the_limit_is_refused_whole(client, stores):
    log = EventLog(client, 3, Limits(max_backlog_events=100))
    log.append_events(submission(batch(60), "a"))
    with pytest.raises(LogFull, match="60 events wait to be matched and with this request it would be 110") as caught:
        log.append_events(submission(batch(50, "f"), "b", key="late"))
    assert caught.value.details == {"full": "events", "backlog": 60, "limit": 100, "retry_after_s": 10}
    assert len(logged(log)) == 60
    log.append_events(submission(batch(40, "g"), "c"))
    assert len(logged(log)) == 100
    assert drain(stores, log) == [True, True, True]
    assert log.append_events(submission(batch(50, "f"), "d", key="late")).earlier is None
    assert len(logged(log)) == 150


def test_bytes_are_limited_too(client, stores):
    log = EventLog(client, 3, Limits(max_log_bytes=20_000))
    log.append_events(submission(batch(60), "a"))
    size = stores.backlog.read().waiting.bytes
    for token in range(20_000 // size - 1):
        log.append_events(submission(batch(60), str(token)))
    with pytest.raises(LogFull, match=r"bytes wait .* raise FORESTALL_LIMITS__MAX_LOG_BYTES") as caught:
        log.append_events(submission(batch(60), "late"))
    assert caught.value.details["full"] == "bytes"
    assert stores.backlog.read().waiting.bytes <= 20_000


def test_a_batch_that_was_taken_is_answered_as_before_though_the_log_is_full(client):
    log = EventLog(client, 3, Limits(max_backlog_events=10))
    log.append_events(submission(batch(10), "a", key="k"))
    assert log.append_events(submission(batch(10), "b", key="k")).earlier == {"accepted": 10}
    with pytest.raises(LogFull):
        log.append_events(submission(batch(1), "c"))


def test_a_batch_larger_than_the_limit_goes_into_an_empty_log(client, stores):
    log = EventLog(client, 3, Limits(max_backlog_events=5))
    log.append_events(submission(batch(20), "a"))
    drain(stores, log)
    log.append_events(submission(batch(20, "f"), "b"))
    assert len(logged(log)) == 40


def test_control_records_and_dead_letters_are_never_refused(client, stores):
    log = EventLog(client, 3, Limits(max_backlog_events=1))
    log.append_events(submission(batch(1), "a"))
    assert stores.registry.declare_stream(StreamDeclaration(name="orders", key="data.id"))
    assert stores.registry.put_pattern("orders", pattern_draft(name="p", text="PATTERN p EVENT A a"), 1)[1]
    assert log.append_events(submission(batch(0), "b")).earlier is None


def test_however_many_append_at_once_the_limit_holds(client):
    log = EventLog(client, 3, Limits(max_backlog_events=100))

    def append(number):
        try:
            log.append_events(submission(batch(7, f"{number}-"), str(number)))
        except LogFull:
            return 0
        return 7

    with ThreadPoolExecutor(8) as pool:
        taken = sum(pool.map(append, range(40)))
    assert taken == 98
    assert len(logged(log)) == taken


def test_matched_parts_are_counted_once_however_often_they_are_told(stores):
    stores.log.append_events(submission(batch(50), "a"))
    stores.log.append_events(submission(batch(50, "f"), "b"))
    shard = shard_of(key_hash("k0"), 3)
    first, last = (entry.position for entry in stores.log.read_range(shard))
    own = len(batch(50).split_by_shard(3)[shard])
    size = len(batch(50).split_by_shard(3)[shard].to_bytes())
    row = stats_row(shard, first)
    assert stores.pipeline_status.note([row]) == [True]
    assert stores.pipeline_status.note([row]) == [False]
    assert stores.backlog.read().matched == Volume(entries=1, events=own, bytes=size)
    assert stores.pipeline_status.note([stats_row(shard, last)]) == [True]
    assert stores.backlog.read().matched == Volume(entries=2, events=2 * own, bytes=2 * size)


def test_control_records_between_events_change_no_counter(stores):
    stores.log.append_events(submission(batch(50), "a"))
    for number in range(5):
        stores.registry.declare_stream(StreamDeclaration(name=f"s{number}", key="data.id"))
    stores.log.append_events(submission(batch(50), "b"))
    positions = [entry.position for entry in stores.log.read_range(0)]
    assert len(positions) == 7
    own = len(batch(50).split_by_shard(3)[0])
    for position in positions[3:6:2]:
        stores.pipeline_status.note([stats_row(0, position)])
        assert stores.backlog.read().matched.events == own


def test_a_log_that_is_older_than_its_counters_mends_them(client, stores):
    for number in range(3):
        client.xadd(log_key(0), {"kind": "events", "stream": "s", "body": b""}, id=f"{number + 1}-1")
    log = EventLog(client, 1, Limits(max_backlog_events=100))
    log.append_events(submission(batch(90), "a"))
    stores.pipeline_status.note([stats_row(0, "2-1")])
    assert stores.backlog.read().waiting.events == 90
    client.delete(APPENDED_KEY)
    stores.pipeline_status.note([stats_row(0, "3-1")])
    assert drain(stores, log) == [True]
    assert stores.backlog.read().waiting == Volume()
    log.append_events(submission(batch(100), "b"))
    assert stores.backlog.read().waiting.events == 100


def test_the_whole_log_read_anew_is_not_counted_again(stores):
    for name in "abc":
        stores.log.append_events(submission(batch(20, name), name))
    drain(stores, stores.log)
    before = stores.backlog.read()
    for shard in range(3):
        for entry in stores.log.read_range(shard):
            assert stores.pipeline_status.note([stats_row(shard, entry.position)]) == [False]
    assert stores.backlog.read() == before
    assert before.waiting == Volume()


def test_positions_are_compared_as_numbers(client, stores):
    for place in ("9-1", "10-2", "10-10"):
        client.xadd(log_key(0), {"kind": "events", "stream": "s", "body": b""}, id=place)
    noted = [
        stores.pipeline_status.note([stats_row(0, place)])[0] for place in ("9-1", "10-2", "10-10", "10-9", "9-99")
    ]
    assert noted == [True, True, True, False, False]


def test_the_rate_is_told_by_the_latest_marks(client, stores):
    assert stores.backlog.drain_rate() is None
    seconds, micros = client.time()
    now = seconds * 10**6 + micros
    for age, events in ((10, 1), (5, 500), (0, 500)):
        client.lpush(MARKS_KEY, f"[{now - age * 10**6},1,{events},{events * 8}]")
    rate = stores.backlog.drain_rate()
    assert 80 <= rate.events <= 100
    log = EventLog(client, 3, Limits(max_backlog_events=1_000))
    log.append_events(submission(batch(1_000), "a"))
    with pytest.raises(LogFull) as caught:
        log.append_events(submission(batch(1_000), "b"))
    assert caught.value.details["retry_after_s"] in range(10, 16)


def test_marks_are_bounded(client, stores):
    for number in range(1, 50):
        stores.log.append_events(submission(batch(20), str(number)))
        drain(stores, stores.log)
    assert client.llen(MARKS_KEY) == 32
