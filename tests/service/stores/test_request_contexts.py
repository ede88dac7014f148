"""What is remembered of traced requests: their events, some of them, and for some time."""

import pytest

from service.errors import LogFull
from service.settings import Limits, TracingSettings
from service.stores import EventLog, RequestContextStore, Submission
from service.stores.request_contexts import CONTEXTS_KEY
from streams import Event, EventBatch, key_hash, shard_of

pytestmark = pytest.mark.redis

CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


def submission(count, *, context=CONTEXT, token="t", first=0, **more):
    events = [Event(id=f"ä {n}", type="A", time_us=10**15 + n, key=f"k{n % 5}") for n in range(first, first + count)]
    return Submission(
        stream="s",
        batch=EventBatch.from_events(events),
        dead_letters=(),
        answer={},
        fingerprint="f",
        token=token,
        context=context,
        **more,
    )


def opened(client, **limits):
    bounds = TracingSettings(**limits)
    return EventLog(client, 3, tracing=bounds), RequestContextStore(client, bounds)


def keys_of(client):
    return client.keys(f"{CONTEXTS_KEY}*")


def test_events_know_their_request_and_their_place_in_the_log(client):
    log, contexts = opened(client)
    receipt = log.append_events(submission(2_500))
    log.append_events(submission(1, first=3_000, context=OTHER, token="u"))
    found = contexts.find("s", [f"ä {n}" for n in range(2_500)])
    assert len(found) == 2_500
    for number in (0, 1, 2_499):
        shard = shard_of(key_hash(f"k{number % 5}"), 3)
        one = found[f"ä {number}"]
        assert (one.traceparent, one.time_us, one.shard) == (CONTEXT, 10**15 + number, shard)
        assert one.position == receipt.positions[shard]
        assert one.taken_us == int(one.position.partition("-")[0]) * 1_000
    assert contexts.find("s", ["ä 3000"])["ä 3000"].traceparent == OTHER
    assert contexts.find("s", ["ä 2500"]) == {}
    assert contexts.find("other", ["ä 0"]) == {}
    assert contexts.find("s", []) == {}


def test_what_is_not_traced_or_not_appended_is_not_remembered(client):
    log, _ = opened(client)
    log.append_events(submission(3, context=None))
    log.append_events(submission(0, token="u"))
    with pytest.raises(LogFull):
        EventLog(client, 3, Limits(max_backlog_events=1)).append_events(submission(3, token="v"))
    assert keys_of(client) == []


def test_a_repetition_keeps_the_request_that_was_taken(client):
    log, contexts = opened(client)
    for context in (CONTEXT, OTHER):
        log.append_events(submission(3, context=context, idempotency_key="once"))
    assert {one.traceparent for one in contexts.find("s", ["ä 0", "ä 1", "ä 2"]).values()} == {CONTEXT}


def test_so_many_events_are_remembered_and_not_for_ever(client):
    log, contexts = opened(client, remember_s=3600, remember_events=4)
    log.append_events(submission(10))
    log.append_events(submission(10, first=20, token="u"))
    assert len(contexts.find("s", [f"ä {n}" for n in range(30)])) == 4
    (key,) = keys_of(client)
    assert 3_600_000 < client.pttl(key) <= 7_200_000


def test_what_the_time_before_has_brought_is_found_and_newer_wins(client):
    log, contexts = opened(client, remember_s=10**5 * 6)
    log.append_events(submission(1))
    (key,) = keys_of(client)
    base, _, number = key.decode().rpartition(":")
    (told,) = client.hvals(key)
    earlier = f"{base}:{int(number) - 1}"
    client.hset(earlier, mapping={"ä 0": told.replace(CONTEXT.encode(), OTHER.encode()), "earlier": told})
    found = contexts.find("s", ["ä 0", "earlier"])
    assert (found["ä 0"].traceparent, found["earlier"].traceparent) == (CONTEXT, CONTEXT)
    client.delete(key)
    assert contexts.find("s", ["ä 0"])["ä 0"].traceparent == OTHER
