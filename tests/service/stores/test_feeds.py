import pytest

from service.errors import FeedMisplaced, LogFull
from service.settings import Limits
from service.stores import EventLog, FeedMark, FeedStep, Submission
from streams import Event, EventBatch

pytestmark = pytest.mark.redis

FIRST = FeedMark(checkpoint="c")


def submission(before, after, count=3, feed="f"):
    events = [Event(id=f"e{n}", type="A", time_us=n, key=f"k{n}") for n in range(count)]
    return Submission(
        stream="orders",
        batch=EventBatch.from_events(events),
        dead_letters=(),
        answer={"accepted": count},
        fingerprint="",
        token="t",
        step=FeedStep(feed=feed, before=before, after=after),
    )


def count(log):
    return sum(len(EventBatch.from_bytes(entry.body)) for shard in range(3) for entry in log.read_range(shard))


def test_a_mark_moves_with_what_is_appended(stores):
    assert stores.feeds.mark("f") is None
    stores.feeds.begin("f", FIRST, "s")
    after = FeedMark(checkpoint="c", batch=0, row=3)
    receipt = stores.log.append_events(submission(FIRST, after))
    assert receipt.earlier is None
    assert (stores.feeds.mark("f"), count(stores.log)) == (after, 3)
    assert stores.client.ttl("forestall:feed:f") == -1


def test_a_step_that_is_sent_again_is_taken_once(stores):
    stores.feeds.begin("f", FIRST, "s")
    step = submission(FIRST, FeedMark(checkpoint="c", batch=1))
    stores.log.append_events(step)
    assert stores.log.append_events(step).earlier == {"accepted": 3}
    assert count(stores.log) == 3


@pytest.mark.parametrize("before", [FeedMark(checkpoint="c", row=1), FeedMark(checkpoint="other")])
def test_a_step_from_elsewhere_is_refused(stores, before):
    stores.feeds.begin("f", FIRST, "s")
    with pytest.raises(FeedMisplaced, match="nothing was appended"):
        stores.log.append_events(submission(before, FeedMark(checkpoint="c", batch=1)))
    assert (stores.feeds.mark("f"), count(stores.log)) == (FIRST, 0)


def test_a_step_of_an_unknown_feed_is_refused(stores):
    with pytest.raises(FeedMisplaced, match="nowhere"):
        stores.log.append_events(submission(FIRST, FeedMark(checkpoint="c", batch=1)))
    assert count(stores.log) == 0


def test_a_full_log_leaves_the_mark_where_it_is(stores, client):
    log = EventLog(client, 3, Limits(max_backlog_events=4))
    stores.feeds.begin("f", FIRST, "s")
    second = FeedMark(checkpoint="c", batch=1)
    log.append_events(submission(FIRST, second))
    with pytest.raises(LogFull):
        log.append_events(submission(second, FeedMark(checkpoint="c", batch=2)))
    assert (stores.feeds.mark("f"), count(log)) == (second, 3)


def test_the_first_mark_of_a_feed_stays(stores):
    stores.feeds.begin("f", FIRST, "s")
    stores.feeds.begin("f", FeedMark(checkpoint="d"), "s")
    assert stores.feeds.mark("f") == FIRST
