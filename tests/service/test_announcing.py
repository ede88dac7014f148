from dataclasses import replace

import pytest

from service.errors import PunctuationAhead, UnknownStream
from service.intake.announcing import Announcing
from service.stores import Submission
from streams import (
    LATEST_US,
    Event,
    EventBatch,
    KeyRange,
    Punctuation,
    StreamDeclaration,
    TraceEnd,
    decode_control,
    key_hash,
    shard_of,
)
from tests.builders.service import HandClock

pytestmark = pytest.mark.redis

AHEAD_US = HandClock().now_us() + 6 * 3_600_000_000


@pytest.fixture
def announcing(stores):
    stores.registry.declare_stream(StreamDeclaration(name="orders"))
    return Announcing(stores, HandClock())


def told(stores):
    return [
        [
            decode_control(one.kind, one.body)
            for one in stores.log.read_range(shard)
            if one.kind not in ("stream-on", "events")
        ]
        for shard in range(stores.log.shards())
    ]


def test_every_shard_hears_a_punctuation(announcing, stores):
    announcing.punctuate("orders", Punctuation(before_us=7))
    assert told(stores) == [[Punctuation(before_us=7)]] * stores.log.shards()


def test_a_range_is_finished_at_the_time_of_the_newest_event_in_every_shard(announcing, stores):
    finished = KeyRange(high=5)
    announcing.punctuate("orders", Punctuation(range=finished))
    batch = EventBatch.from_events([Event(id="e", type="A", time_us=9, key="k", data={})])
    stores.log.append_events(
        Submission(stream="orders", batch=batch, dead_letters=[], answer={}, fingerprint="", token="t")
    )
    announcing.punctuate("orders", Punctuation(range=finished))
    announcing.punctuate("orders", Punctuation(range=finished, time_us=3))
    expected = [Punctuation(range=finished, time_us=time_us) for time_us in (None, 9, 3)]
    assert told(stores) == [expected] * stores.log.shards()


def test_the_shard_of_a_trace_hears_its_end(announcing, stores):
    end = TraceEnd(key="k", time_us=5)
    announcing.end_trace("orders", end)
    home = shard_of(key_hash("k"), stores.log.shards())
    assert told(stores) == [[end] if shard == home else [] for shard in range(stores.log.shards())]


def test_the_stream_must_be_there(announcing, stores):
    for call in (
        lambda: announcing.punctuate("other", Punctuation(key="k")),
        lambda: announcing.end_trace("other", TraceEnd(key="k")),
    ):
        with pytest.raises(UnknownStream):
            call()
    assert told(stores) == [[]] * stores.log.shards()


@pytest.mark.parametrize(
    "promise",
    [
        Punctuation(before_us=AHEAD_US + 1),
        Punctuation(range=KeyRange(high=5), time_us=AHEAD_US + 1),
        Punctuation(before_us=LATEST_US, key="k"),
    ],
)
def test_a_punctuation_from_the_future_is_refused(announcing, stores, promise):
    with pytest.raises(
        PunctuationAhead, match=r"stream 'orders'.* takes times up to 2026-01-01T06:00:00.000000Z; correct"
    ):
        announcing.punctuate("orders", promise)
    with pytest.raises(PunctuationAhead, match="of the end of the trace is ahead"):
        announcing.end_trace("orders", TraceEnd(key="k", time_us=AHEAD_US + 1))
    assert told(stores) == [[]] * stores.log.shards()
    announcing.punctuate("orders", Punctuation(before_us=AHEAD_US))
    stores.registry.declare_stream(StreamDeclaration(name="any", max_ahead="none"))
    announcing.punctuate("any", replace(promise, key=None))
