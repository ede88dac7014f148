"""Ids of events in Redis: known as long as they are to be, in bounded memory."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from service.settings import Limits
from service.stores import EventLog, Submission, event_digest
from streams import Event, EventBatch

pytestmark = pytest.mark.redis

SETS = 6


def submission(numbers, *, stream="orders", key=None, token="t"):
    events = [Event(id=f"e{number}", type="A", time_us=number, key="k") for number in numbers]
    return Submission(
        stream=stream,
        batch=EventBatch.from_events(events),
        dead_letters=(),
        answer={"accepted": len(events)},
        fingerprint="f",
        token=token,
        idempotency_key=key,
        ids=[event_digest("", event.id) for event in events],
    )


def logged(log):
    entries = [entry for shard in range(log.shards()) for entry in log.read_range(shard)]
    return [event.id for entry in entries for event in EventBatch.from_bytes(entry.body).to_events()]


def test_an_event_is_appended_once(stores):
    assert stores.log.append_events(submission([1, 2], token="a")).dropped == 0
    receipt = stores.log.append_events(submission([2, 3, 1, 4], token="b"))
    assert (receipt.dropped, receipt.earlier) == (2, None)
    assert logged(stores.log) == ["e1", "e2", "e3", "e4"]
    assert stores.log.duplicates() == {"orders": 2}


def test_every_stream_knows_its_own(stores):
    for stream in ("orders", "payments"):
        assert stores.log.append_events(submission([1], stream=stream, token=stream)).dropped == 0


def test_many_repetitions_are_left_out_at_once(stores):
    stores.log.append_events(submission(range(20_000), token="a"))
    assert stores.log.append_events(submission(range(20_001), token="b")).dropped == 20_000
    assert len(logged(stores.log)) == 20_001


def test_an_answer_that_was_lost_is_given_again_and_counts_nothing(stores):
    first = submission([1, 2], token="a")
    stores.log.append_events(first)
    assert stores.log.append_events(first).earlier == {"accepted": 2}  # as a client does that saw no reply
    assert stores.log.duplicates() == {}


def test_the_answer_that_is_kept_says_how_many_were_left_out(stores):
    stores.log.append_events(submission([1], token="a"))
    stores.log.append_events(submission([1, 2], key="b", token="b"))
    again = stores.log.append_events(submission([1, 2], key="b", token="c"))
    assert again.earlier == {"accepted": 1, "duplicates": 1}


def test_a_batch_that_the_log_does_not_take_leaves_no_ids(stores):
    log = EventLog(stores.client, 3, Limits(max_backlog_events=1))
    log.append_events(submission([0], token="a"))
    with pytest.raises(Exception, match="the log is full"):
        log.append_events(submission([1, 2], token="b"))
    assert stores.log.append_events(submission([1, 2], token="b")).dropped == 0


def test_of_many_who_send_the_same_events_one_has_each(stores):
    def send(number):
        return stores.log.append_events(submission(range(number, number + 40), token=f"t{number}")).dropped

    with ThreadPoolExecutor(8) as pool:
        dropped = sum(pool.map(send, range(20)))
    assert sorted(logged(stores.log)) == sorted(f"e{number}" for number in range(59))
    assert dropped == 20 * 40 - 59


def test_the_newest_ids_are_known_and_no_more_than_a_bound(stores):
    log = EventLog(stores.client, 3, Limits(event_ids_kept=400))
    for first in range(0, 3_000, 10):
        log.append_events(submission(range(first, first + 10), token=f"t{first}"))
    keys = list(stores.client.scan_iter(match="forestall:event-ids:orders:*"))
    known = sum(stores.client.scard(key) for key in keys)
    assert len(keys) <= SETS
    assert 400 <= known <= 600
    assert log.append_events(submission(range(2_600, 3_000), token="new")).dropped == 400
    assert log.append_events(submission([0], token="old")).dropped == 0


def test_ids_are_forgotten_after_a_time(stores):
    stores.log.append_events(submission([1], token="a"))
    (key,) = stores.client.scan_iter(match="forestall:event-ids:orders:*")
    assert 86_000_000 < stores.client.pttl(key) <= 86_400_000
