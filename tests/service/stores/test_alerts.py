import orjson
import pytest

from service.errors import InvalidCursor, RecordFormatError, TooManyNotes, UnknownAlert
from service.stores import Acknowledgement, AlertFilter, AlertStore, Note, RegisteredWebhook
from service.stores.results.alerts import BLOCKS_KEY
from tests.builders.service import sink_row

pytestmark = pytest.mark.redis


def alert(number, *, stream="orders", pattern="p"):
    body = orjson.dumps({"id": f"a{number}", "stream": stream, "pattern": pattern, "key": "Zoë"})
    return sink_row(kind="alert", stream=stream, id=f"a{number}", body=body)


def told(number, second, key="k"):
    detected_at = f"2026-01-01T00:00:{second:02}Z"
    body = orjson.dumps({"id": f"a{number}", "stream": "s", "pattern": "p", "key": key, "detected_at": detected_at})
    return sink_row(kind="alert", stream="s", id=f"a{number}", body=body)


def webhook(name, **changes):
    fields = {"url": "http://x", "secret": "whsec_", "stream": None, "pattern": None}
    return RegisteredWebhook(**{**fields, "id": name, "is_enabled": True, "registered_us": 0, **changes})


@pytest.fixture
def alerts(stores):
    return stores.alerts


def ids(page):
    return [found["id"] for found in page.items]


def test_an_alert_is_kept_byte_for_byte_and_with_the_time_at_which_it_was_found(alerts):
    assert alerts.append([alert(1)], [], 1_000_000) == 1
    assert alerts.append([alert(1)], [], 2_000_000) == 0
    assert alerts.body("a1") == alert(1).body[:-1] + b',"created_at":"1970-01-01T00:00:01.000000Z"}'
    assert alerts.get("a1")["key"] == "Zoë"


def test_an_alert_is_kept_once(alerts, stores):
    hooks = [webhook("w")]
    alerts.append([alert(1), alert(2)], hooks, 0)
    assert alerts.append([alert(2), alert(1), alert(3)], hooks, 9) == 1
    assert ids(alerts.page()) == ["a1", "a2", "a3"]
    assert stores.deliveries.queued() == 3


def test_alerts_are_counted_once_by_stream_and_pattern(alerts):
    alerts.append([alert(1), alert(2, pattern="q"), alert(3, stream="payments")], [], 0)
    alerts.append([alert(1), alert(4)], [], 0)
    assert alerts.counts() == {("orders", "p"): 2, ("orders", "q"): 1, ("payments", "p"): 1}


def test_an_alert_is_queued_for_every_webhook_that_wants_it(alerts, stores):
    hooks = [
        webhook("all"),
        webhook("stream", stream="orders"),
        webhook("pattern", pattern="q"),
        webhook("both", stream="orders", pattern="p"),
        webhook("other", stream="payments"),
        webhook("gone", is_enabled=False),
    ]
    for hook in hooks:
        stores.webhooks.put(hook)
    alerts.append([alert(1)], hooks, 5)
    claimed = stores.deliveries.claim(5, 10, 99)
    assert sorted(delivery.webhook for delivery in claimed) == ["all", "both", "stream"]
    assert {delivery.alert for delivery in claimed} == {"a1"}


def test_pages_follow_one_another_in_the_order_of_writing(alerts):
    alerts.append([alert(number) for number in range(450)], [], 0)
    seen, after = [], "0"
    while page := ids(result := alerts.page(after=after, limit=100)):
        seen += page
        after = result.after
    assert seen == [f"a{number}" for number in range(450)]
    alerts.append([alert(999)], [], 0)
    assert ids(alerts.page(after=after)) == ["a999"]


@pytest.mark.parametrize("limit", [1, 100, 199, 200, 450, 451])
def test_pages_with_the_newest_first_hold_every_alert_once(alerts, limit):
    alerts.append([alert(number, pattern="p" if number % 3 else "q") for number in range(450)], [], 0)
    for wanted, expected in (
        (AlertFilter(), list(range(450))),
        (AlertFilter(pattern="q"), list(range(0, 450, 3))),
        (AlertFilter(stream="orders", key="j"), []),
    ):
        first = page = alerts.page(wanted, after=None, limit=limit)
        seen = ids(page)
        while page.next is not None and len(seen) < 3 * limit:
            page = alerts.page(wanted, after=page.next, limit=limit)
            seen += ids(page)
        assert seen == [f"a{number}" for number in reversed(expected)][: len(seen)]
        assert len(seen) == min(len(expected), 3 * limit)
        assert ids(alerts.page(wanted, after=first.after)) == []
    after = alerts.page(after=None, limit=2).after
    alerts.append([alert(900), alert(901)], [], 0)
    assert ids(alerts.page(after=after)) == ["a900", "a901"]


@pytest.mark.parametrize("before", [[], [alert(1)]])
def test_an_alert_that_comes_while_a_page_is_read_is_after_the_page(alerts, monkeypatch, before):
    alerts.append(before, [], 0)
    newest = alerts.newest

    def newest_and_more():
        known = newest()
        alerts.append([alert(2)], [], 0)
        return known

    read = alerts._marked
    monkeypatch.setattr(alerts, "newest", newest_and_more)
    page = alerts.page(AlertFilter(), after=None)
    assert (ids(page), ids(alerts.page(after=page.after))) == (["a2", *[one.id for one in before]], [])

    def read_and_more(*arguments):
        yield from list(read(*arguments))
        alerts.append([alert(3)], [], 0)

    monkeypatch.setattr(alerts, "_marked", read_and_more)
    page = alerts.page(AlertFilter(), after=None)
    monkeypatch.undo()
    assert ids(alerts.page(after=page.after)) == ["a3"]


def test_lists_are_filtered_by_stream_and_pattern(alerts):
    alerts.append([alert(1), alert(2, pattern="q"), alert(3, stream="payments"), alert(4)], [], 0)
    assert ids(alerts.page(AlertFilter(stream="orders"))) == ["a1", "a2", "a4"]
    assert ids(alerts.page(AlertFilter(pattern="p"))) == ["a1", "a3", "a4"]
    assert ids(alerts.page(AlertFilter(stream="orders", pattern="p"))) == ["a1", "a4"]
    assert ids(alerts.page(AlertFilter(stream="nothing"))) == []


@pytest.mark.parametrize("cursor", ["-1", "1-0", "x", "", "9" * 30, "9" * 5000, "١"])
def test_a_wrong_cursor_is_refused(alerts, cursor):
    with pytest.raises(InvalidCursor):
        alerts.page(after=cursor)


def test_an_unknown_alert_is_named(alerts):
    with pytest.raises(UnknownAlert, match="'a1'"):
        alerts.get("a1")


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        (b'{"format":2,"size":0,"ids":["a1"],"patterns":["p"]}', "has format 2; this release reads 1"),
        (b'{"format":1,"size":90,"ids":["a1"],"patterns":["p"]}\nxyz', "is damaged"),
    ],
)
def test_alerts_of_unknown_format_are_refused(alerts, client, block, fault):
    alerts.append([alert(1)], [], 0)
    client.hset(BLOCKS_KEY, "1-0:orders", block)
    with pytest.raises(RecordFormatError, match=f"the alerts '1-0:orders' {fault}"):
        alerts.get("a1")
    with pytest.raises(RecordFormatError, match=fault):
        alerts.page()


def test_alerts_are_chosen_by_key_and_time(alerts):
    alerts.append([told(1, 10), told(2, 30, "j"), told(3, 20), told(4, 40)], [], 0)
    second_us = 1_000_000
    start_us = 1_767_225_600 * second_us
    assert ids(alerts.page(AlertFilter(key="j"))) == ["a2"]
    assert ids(alerts.page(AlertFilter(since_us=start_us + 20 * second_us))) == ["a2", "a3", "a4"]
    wanted = AlertFilter(stream="s", since_us=start_us + 20 * second_us, until_us=start_us + 40 * second_us)
    page = alerts.page(wanted, limit=1)
    assert (ids(page), page.has_more) == (["a2"], True)
    page = alerts.page(wanted, after=page.after, limit=2)
    assert (ids(page), page.has_more, page.after) == (["a3"], False, "4")


def test_a_page_looks_at_some_alerts_and_no_more(alerts):
    alerts.append([told(number, 0, "rare" if number == 6_000 else "k") for number in range(6_001)], [], 0)
    page = alerts.page(AlertFilter(key="rare"))
    assert (ids(page), page.has_more) == ([], True)
    page = alerts.page(AlertFilter(key="rare"), after=page.after)
    assert (ids(page), page.has_more) == (["a6000"], False)


def test_an_alert_is_acknowledged_once(alerts):
    alerts.append([alert(1), alert(2)], [], 0)
    first = alerts.marks.acknowledge("a1", Acknowledgement(at_us=5, by="ann"))
    assert first == Acknowledgement(at_us=5, by="ann")
    assert alerts.marks.acknowledge("a1", Acknowledgement(at_us=9, by="bob")) == first
    assert ids(alerts.page(AlertFilter(is_acknowledged=True))) == ["a1"]
    assert ids(alerts.page(AlertFilter(is_acknowledged=False))) == ["a2"]
    with pytest.raises(UnknownAlert):
        alerts.marks.acknowledge("a9", Acknowledgement(at_us=5))


def test_notes_stay_in_their_order_and_are_bounded(alerts):
    alerts.append([alert(1)], [], 0)
    notes = [Note(id=str(number), at_us=number, text="t") for number in range(100)]
    for note in [*notes, notes[0]]:
        alerts.marks.add_note("a1", note)
    assert alerts.marks.notes("a1") == notes
    with pytest.raises(TooManyNotes):
        alerts.marks.add_note("a1", Note(id="x", at_us=0, text="t"))
    with pytest.raises(UnknownAlert):
        alerts.marks.add_note("a2", notes[0])


def test_the_oldest_alerts_of_a_stream_go_with_all_that_belongs_to_them(client):
    store = AlertStore(client, kept=3)
    store.append([alert(1), alert(2, pattern="q"), alert(3, stream="other")], [], 0, 1)
    store.marks.acknowledge("a1", Acknowledgement(at_us=5))
    store.marks.add_note("a1", Note(id="n", at_us=5, text="t"))
    store.append([alert(4), alert(5), alert(6)], [], 0, 2)
    assert ids(store.page()) == ["a3", "a4", "a5", "a6"]
    assert ids(store.page(AlertFilter(stream="orders"), after="1", limit=2)) == ["a4", "a5"]
    assert ids(store.page(AlertFilter(pattern="q"))) == []
    assert ids(store.page(AlertFilter(stream="orders", pattern="q"))) == []
    assert (store.trimmed(), store.counts()["orders", "q"]) == ({"orders": 2}, 1)
    assert (store.marks.acknowledgements(["a1"]), store.marks.notes("a1")) == ([None], [])
    with pytest.raises(UnknownAlert):
        store.get("a1")


def test_what_went_does_not_come_back_with_its_micro_batch(client, stores):
    store = AlertStore(client, kept=3)
    rows = [alert(number) for number in range(10)]
    hooks = [webhook("w")]
    assert store.append(rows, hooks, 0, 1) == 10
    assert store.append(rows[4:], hooks, 0, 1) == 0
    assert store.append(rows, hooks, 0, 1) == 0
    assert (ids(store.page()), store.newest(), stores.deliveries.queued()) == (["a7", "a8", "a9"], "10", 10)
    assert store.append([alert(10)], hooks, 0, 2) == 1
    assert ids(store.page()) == ["a8", "a9", "a10"]


def test_a_lower_limit_is_reached_in_steps(client):
    AlertStore(client).append([alert(number) for number in range(2_500)], [], 0, 1)
    store = AlertStore(client, kept=10)
    left = []
    for epoch in range(2, 5):
        store.append([alert(10_000 + epoch)], [], 0, epoch)
        left.append(len(store.page(limit=3_000).items))
    assert left == [1_501, 502, 103]  # the rest of its first block is more than may be removed
