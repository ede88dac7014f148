"""Pages of the events of a derived stream, read from a real list."""

import orjson
import pytest

from service.errors import InvalidCursor
from service.stores import EventFilter
from service.stores.results.recent import RecentList
from streams import StreamDeclaration
from tests.builders.service import sink_row

pytestmark = pytest.mark.redis


@pytest.fixture
def pages(stores):
    stores.registry.declare_stream(StreamDeclaration(name="late", derived=True))
    stores.registry.declare_stream(StreamDeclaration(name="other", derived=True))
    return stores.event_pages


def derive(stores, *numbers, into="late", key="k", epoch=1):
    def row(number):
        event = {"id": f"d{number}", "stream": "orders", "into": into, "type": "T", "time": "2026-01-01T00:00:01Z"}
        event |= {"key": key, "data": {"n": number}, "pattern": "p", "version": 1, "source_key": "k", "rekeyed": False}
        return sink_row(kind="derived", stream="orders", id=f"d{number}", body=orjson.dumps(event))

    stores.results["derived"].append([row(number) for number in numbers], epoch)


def ids(page):
    return [one["id"] for one in page.items]


def test_events_are_paged_from_the_oldest_on_and_followed(pages, stores):
    derive(stores, 1, 2, 3)
    derive(stores, 4, into="other", epoch=2)
    wanted = EventFilter(stream="late")
    first = pages(wanted, "0", 2)
    assert (ids(first), first.has_more, first.cursors[-1]) == (["d1", "d2"], True, first.after)
    assert first.items[0] == {"id": "d1", "type": "T", "time": "2026-01-01T00:00:01Z", "key": "k", "data": {"n": 1}}
    rest = pages(wanted, first.after, 2)
    assert (ids(rest), rest.has_more, rest.trimmed_us) == (["d3"], False, None)
    derive(stores, 5, epoch=3)
    assert ids(pages(wanted, rest.after, 2)) == ["d5"]
    assert pages(wanted, pages(wanted, "0", 10).after, 2).items == []


def test_without_a_cursor_the_newest_come(pages, stores):
    wanted = EventFilter(stream="late")
    assert pages(wanted, None, 2).items == []
    derive(stores, 1, 2, 3)
    newest = pages(wanted, None, 2)
    assert ids(newest) == ["d2", "d3"]
    derive(stores, 4, epoch=2)
    assert ids(pages(wanted, newest.after, 2)) == ["d4"]


def test_events_are_chosen_by_key_type_and_beginning(pages, stores):
    derive(stores, 1)
    derive(stores, 2, key="other", epoch=2)
    assert ids(pages(EventFilter(stream="late", key="other"), "0", 9)) == ["d2"]
    assert pages(EventFilter(stream="late", event_type="U"), "0", 9).items == []
    assert pages(EventFilter(stream="late", since_ms=2**45), "0", 9).items == []


def test_what_is_no_cursor_is_refused(pages):
    with pytest.raises(InvalidCursor):
        pages(EventFilter(stream="late"), "1-1_2-2", 1)


def test_a_page_says_where_older_events_are_gone(pages, stores):
    derive(stores, 1)
    derive(stores, 2, epoch=2)
    stores.client.xtrim("forestall:derived-events", maxlen=1, approximate=False)
    page = pages(EventFilter(stream="late"), "0", 9)
    assert ids(page) == ["d2"]
    assert page.trimmed_us is not None


def test_a_reader_that_falls_behind_learns_that_events_of_its_millisecond_are_gone(pages, stores):
    """All events of a micro-batch may have one millisecond; their list keeps the newest of all derived streams."""
    key, wanted = "forestall:derived-events", EventFilter(stream="late")
    for number in range(1, 5):
        derive(stores, number, epoch=number)
    records = [fields for _, fields in stores.client.xrange(key)]
    stores.client.delete(key)
    for number, fields in enumerate(records, start=1):
        stores.client.xadd(key, fields, id=f"7-{number}")
    assert len(records) == 4
    first = pages(wanted, "0", 1)
    assert (ids(first), first.trimmed_us) == (["d1"], None)
    stores.client.xtrim(key, maxlen=1, approximate=False)
    behind = pages(wanted, first.after, 9)
    assert (ids(behind), behind.trimmed_us) == (["d4"], 7_000)
    assert pages(wanted, behind.after, 9).trimmed_us is None


def test_a_page_may_begin_and_end_in_a_block(pages, stores):
    derive(stores, *range(10))
    derive(stores, *range(10, 13), epoch=2)
    found, after = [], "0"
    while page := ids(read := pages(EventFilter(stream="late"), after, 4)):
        assert read.after == read.cursors[-1]
        found.append(page)
        after = read.after
    assert found == [[f"d{number}" for number in some] for some in (range(4), range(4, 8), range(8, 12), [12])]
    assert ids(pages(EventFilter(stream="late"), None, 5)) == [f"d{number}" for number in range(8, 13)]


def test_what_is_trimmed_while_a_page_is_read_is_known(pages, stores, monkeypatch):
    for number in (1, 2, 3):
        derive(stores, number, epoch=number)
    first = pages(EventFilter(stream="late"), "0", 1)
    read = RecentList.oldest_first

    def trimmed_first(self, place):
        stores.client.xtrim("forestall:derived-events", maxlen=1, approximate=False)
        return read(self, place)

    monkeypatch.setattr(RecentList, "oldest_first", trimmed_first)
    page = pages(EventFilter(stream="late"), first.after, 9)
    assert ids(page) == ["d3"]
    assert page.trimmed_us is not None
