"""Pages of the events of a stream, read from a real log."""

import time
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service import Stores
from service.errors import InvalidCursor
from service.stores import EventFilter
from service.stores.log import event_pages
from service.stores.log.event_log import Submission
from streams import Event, EventBatch, StreamDeclaration, key_hash, log_key, shard_of
from tests.builders.service import settings_for

pytestmark = pytest.mark.redis

_tokens = count()


@pytest.fixture
def pages(stores):
    stores.registry.declare_stream(StreamDeclaration(name="s"))
    stores.registry.declare_stream(StreamDeclaration(name="other"))
    return stores.event_pages


def event(number, key="k", type_="A"):
    return Event(id=f"e{number}", type=type_, time_us=number * 1_000_000, key=key, data={"n": number})


def post(stores, *events, stream="s"):
    stores.log.append_events(
        Submission(
            stream=stream,
            batch=EventBatch.from_events(events),
            dead_letters=[],
            answer={},
            fingerprint="",
            token=f"t{next(_tokens)}",
        )
    )


def ids(page):
    return [one["id"] for one in page.items]


def all_behind(pages, wanted, after, limit):
    found = []
    while True:
        page = pages(wanted, after, limit)
        assert len(page.items) <= limit
        assert len(page.cursors) == len(page.items)
        found += page.items
        after = page.after
        if not page.has_more:
            return found, after


def test_an_event_is_shown_as_it_was_taken(pages, stores):
    post(stores, event(1))
    assert pages(EventFilter(stream="s"), "0", 10).items == [
        {"id": "e1", "type": "A", "time": "1970-01-01T00:00:01.000000Z", "key": "k", "data": {"n": 1}}
    ]


def test_without_a_cursor_the_newest_come_and_then_what_is_newer(pages, stores):
    for number in range(1, 6):
        post(stores, event(number, f"k{number}"), event(number + 10, f"k{number}"))
        time.sleep(0.002)  # what came to several shards within a millisecond has no order
    first = pages(EventFilter(stream="s"), None, 3)
    assert ids(first) == ["e14", "e5", "e15"]
    assert not first.has_more
    post(stores, event(20))
    assert ids(pages(EventFilter(stream="s"), first.after, 3)) == ["e20"]


def test_a_page_may_end_inside_of_an_entry(pages, stores):
    post(stores, *(event(number) for number in range(7)))
    page = pages(EventFilter(stream="s"), "0", 3)
    assert (ids(page), page.has_more) == (["e0", "e1", "e2"], True)
    assert ids(pages(EventFilter(stream="s"), page.cursors[0], 3)) == ["e1", "e2", "e3"]
    assert ids(pages(EventFilter(stream="s"), page.after, 10)) == ["e3", "e4", "e5", "e6"]


def test_events_are_chosen_by_key_and_type_and_stream(pages, stores):
    post(stores, event(1, "a"), event(2, "b", "B"), event(3, "a", "B"))
    post(stores, event(4, "a"), stream="other")
    assert ids(pages(EventFilter(stream="s", key="a"), "0", 10)) == ["e1", "e3"]
    assert sorted(ids(pages(EventFilter(stream="s", event_type="B"), "0", 10))) == ["e2", "e3"]
    assert ids(pages(EventFilter(stream="s", key="a", event_type="B"), None, 10)) == ["e3"]
    assert ids(pages(EventFilter(stream="s", key="nobody"), "0", 10)) == []


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("AB"), st.integers(1, 4)), max_size=12),
    st.integers(1, 7),
    st.sampled_from([None, "a"]),
    st.sampled_from([None, "B"]),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_event_is_on_one_page(pages, stores, batches, limit, key, type_):
    _, start = all_behind(pages, EventFilter(stream="s"), "0", 1_000)
    numbers, sent = count(), []
    for of, named, size in batches:
        batch = [event(next(numbers), of, named) for _ in range(size)]
        post(stores, *batch)
        post(stores, event(0), stream="other")
        sent += batch
    found, _ = all_behind(pages, EventFilter(stream="s", key=key, event_type=type_), start, limit)
    wanted = [one.id for one in sent if key in (None, one.key) and type_ in (None, one.type)]
    assert sorted(one["id"] for one in found) == sorted(wanted)
    for of in "abcdefgh":
        in_order = [one.id for one in sent if one.key == of and one.id in wanted]
        assert [one["id"] for one in found if one["key"] == of] == in_order


def test_a_page_reads_a_bounded_part_of_the_log(pages, stores, monkeypatch):
    post(stores, event(1))
    for number in range(20):
        post(stores, event(number), stream="other")
    post(stores, event(2))
    monkeypatch.setattr(event_pages, "_MOST_ENTRIES", 5)
    monkeypatch.setattr(event_pages._Budget.__init__, "__defaults__", (5, 10**9))
    page = pages(EventFilter(stream="s"), "0", 10)
    assert (len(page.items) < 2, page.has_more) == (True, True)
    found, _ = all_behind(pages, EventFilter(stream="s"), "0", 10)
    assert [one["id"] for one in found] == ["e1", "e2"]
    assert ids(pages(EventFilter(stream="s"), None, 10)) == ["e2"]


def test_what_was_removed_from_the_log_is_said(pages, stores, client):
    for number in range(6):
        post(stores, event(number))
    home = log_key(shard_of(key_hash("k"), stores.log.shards()))
    whole = pages(EventFilter(stream="s"), "0", 10)
    assert whole.trimmed_us is None
    client.xtrim(home, maxlen=2, approximate=False)
    page = pages(EventFilter(stream="s"), "0", 10)
    ((first, _),) = client.xrange(home, count=1)
    assert (ids(page), page.trimmed_us) == (["e4", "e5"], int(first.split(b"-")[0]) * 1_000)
    assert pages(EventFilter(stream="s"), page.after, 10).trimmed_us is None
    assert pages(EventFilter(stream="s"), None, 10).trimmed_us is None


def test_shards_that_come_later_are_read_from_their_beginning(pages, stores, client):
    post(stores, event(1))
    shards = range(stores.log.shards())
    places = [client.xinfo_stream(log_key(shard))["last-generated-id"].decode() for shard in shards]
    assert ids(pages(EventFilter(stream="s"), "_".join(places), 10)) == []  # a cursor of an earlier release
    shorter = "_".join(places[:-1])
    keys = (f"k{number}" for number in count())
    home = next(key for key in keys if shard_of(key_hash(key), stores.log.shards()) == stores.log.shards() - 1)
    post(stores, event(2, home))
    assert "e2" in ids(pages(EventFilter(stream="s"), shorter, 10))


def test_a_cursor_is_short_and_misses_nothing_whatever_comes_in_between(stores, client, server_url):
    client.flushall()
    many = Stores(client, server_url, settings_for(server_url, shards=1_024))
    many.registry.declare_stream(StreamDeclaration(name="s"))
    found, cursor, number = [], many.event_pages(EventFilter(stream="s"), None, 1).after, 0
    for step in range(12):
        for _ in range(3):
            post(many, *(event(number + row, f"k{number + row}") for row in range(7)))
            number += 7
        client.xadd(log_key(step), {"kind": "tick", "stream": "s", "body": b""}, id=f"{2_000_000_000_000 + step}-0")
        post(many, event(number, f"k{step}"))
        number += 1
        page = many.event_pages(EventFilter(stream="s"), cursor, 5 + step)
        found += ids(page)
        cursor = page.after
        assert max(map(len, page.cursors)) < 40
    rest, end = all_behind(many.event_pages, EventFilter(stream="s"), cursor, 50)
    found += [one["id"] for one in rest]
    assert len(found) == len(set(found)) == number
    assert many.event_pages(EventFilter(stream="s"), end, 5).items == []
    client.hset("forestall:log:counts", "newest", "2100000000000-7")  # as if the clock had been set back
    post(many, event(number))
    assert ids(many.event_pages(EventFilter(stream="s"), end, 5)) == [f"e{number}"]


@pytest.mark.parametrize("cursor", ["", "x", "1", "1-", "1-0.", "0_0-0", "1-0 ", "_".join(["0-0"] * 4_000)])
def test_another_text_is_no_cursor(pages, cursor):
    with pytest.raises(InvalidCursor):
        pages(EventFilter(stream="s"), cursor, 10)
