"""The contract of every capped list with counters."""

from functools import partial

import orjson
import pytest

from service.errors import InvalidCursor
from service.stores import DeadLetterStore, RecentStore, RegisteredWebhook
from service.stores.results.recent import COUNTS_SUFFIX, list_key
from shards import DEAD_LETTER, RESULT_KINDS
from tests.builders.service import sink_row

pytestmark = pytest.mark.redis


LISTED = [kind for kind in RESULT_KINDS.values() if kind.plural and kind is not DEAD_LETTER]
ENDING, DEVIATION, CORRECTION = (RESULT_KINDS[name] for name in ("ending", "deviation", "correction"))


@pytest.fixture(
    params=[*(partial(RecentStore, kind=kind) for kind in LISTED), DeadLetterStore],
    ids=[*(kind.name for kind in LISTED), "dead-letter"],
)
def opened(request):
    return request.param


OF_LONG = pytest.mark.parametrize(  # whose lists are all of one class, but for dead letters
    "opened", [partial(RecentStore, kind=ENDING), DeadLetterStore], ids=["ending", "dead-letter"], indirect=True
)


@pytest.fixture
def store(opened, client):
    return opened(client, kept=10_000)


@pytest.fixture
def row(opened, client):
    """Makes rows of the kind that is listed."""
    return partial(made, kind=opened(client).kind.name)


def made(number, stream="orders", kind="ending", **fields):
    body = {
        "id": f"r{number}",
        "stream": stream,
        "pattern": "p",
        "event_type": "A",
        "code": "c",
        **fields,
    }
    return sink_row(kind=kind, stream=stream, id=f"r{number}", body=orjson.dumps(body))


def total(store):
    return sum(counter["count"] for counter in store.counts())


def test_the_newest_come_first(store, row):
    store.append([row(number) for number in range(5)], 0)
    assert [record["id"] for record in store.page(3).items] == ["r4", "r3", "r2"]


def test_a_micro_batch_that_comes_again_is_counted_once(store, row):
    rows = [row(number) for number in range(1200)]
    assert store.append(rows[:700], 4) == 700
    assert store.append(rows, 4) == 500
    assert store.append(rows, 4) == 0
    assert total(store) == 1200
    assert len(store.page(5000).items) == 1200


def test_ids_are_forgotten_with_the_next_micro_batch(store, client, row):
    store.append([row(number) for number in range(100)], 0)
    store.append([row(1000)], 1)
    assert client.scard(store.key + ":seen") == 2


def test_a_pipeline_that_starts_over_counts_anew(store, row):
    store.append([row(1)], 7)
    assert store.append([row(1)], 0) == 1


@OF_LONG
def test_old_records_go_and_counters_stay(client, opened, row):
    small = opened(client, kept=10)
    small.append([row(number) for number in range(3000)], 0)
    assert len(small.page(5000).items) < 1000
    assert total(small) == 3000


def test_records_of_one_stream_are_found_among_many(store, row):
    store.append([row(number, "orders" if number % 600 == 0 else "payments") for number in range(1300)], 0)
    assert [record["id"] for record in store.page(9, stream="orders").items] == ["r1200", "r600", "r0"]
    assert len(store.page(2, stream="orders").items) == 2


@OF_LONG
@pytest.mark.parametrize("stream", [None, "orders"])
@pytest.mark.parametrize("limit", [1, 499, 500, 1199, 1200, 1201])
def test_pages_hold_every_record_once(store, limit, stream, row):
    store.append([row(number) for number in range(1200)], 0)
    found: list[str] = []
    after = None
    while not found or after is not None:
        page = store.page(limit, stream=stream, after=after)
        assert 0 < len(page.items) <= limit
        found += [record["id"] for record in page.items]
        after = page.next
        store.append([row(f"-new-{after}")], 1)  # what comes in between is newer than every cursor
        if limit == 1 and len(found) == 20:
            break
    assert found == [f"r{number}" for number in reversed(range(1200))][: 20 if limit == 1 else None]


def test_a_cursor_is_good_when_its_record_has_gone(client, opened, row):
    store = opened(client, kept=250)
    store.append([row(number) for number in range(300)], 0)
    page = store.page(100)
    rest = store.page(1000, after=page.next)
    assert [record["id"] for record in rest.items] == [f"r{number}" for number in reversed(range(50, 200))]
    client.delete(store.key)
    gone = store.page(1000, after=page.next)
    assert (gone.items, gone.next) == ([], None)


@pytest.mark.parametrize("stream", [None, "orders"])
@pytest.mark.parametrize("limit", [1, 7, 500, 1201])
def test_pages_with_the_oldest_first_hold_every_record_once_and_the_new_ones(store, limit, stream, row):
    store.append([row(number) for number in range(1200)], 0)
    start = store.page(limit, stream=stream, order="asc")
    found, page = list(start.items), start
    while page.next is not None and len(found) < 30 * limit:
        page = store.page(limit, stream=stream, after=page.next)
        assert len(page.cursors) == len(page.items)
        found += page.items
    assert [record["id"] for record in found] == [f"r{number}" for number in range(len(found))]
    newest = store.page(3, stream=stream)
    store.append([row(1200), row(1201)], 1)
    later = store.page(limit, stream=stream, after=newest.after)
    assert [record["id"] for record in later.items] == ["r1200", "r1201"][:limit]
    assert store.page(9, after=later.after, stream=stream).items == ([] if limit > 1 else store.page(1).items)


def test_the_beginning_and_an_order_that_a_cursor_has_not(store, row):
    store.append([row(1), row(2)], 0)
    assert store.page(9, after="0").items == store.page(9, order="asc").items == store.page(9).items[::-1]
    with pytest.raises(InvalidCursor, match="cursor of the order asc"):
        store.page(9, after="0", order="desc")


@pytest.mark.parametrize("cursor", ["", "x", "1", "-1-0", "1-x", "0-0", "00-0", "9" * 5000, "١-١", "+", "(1-1"])
def test_what_is_no_cursor_is_refused(client, cursor):
    with pytest.raises(InvalidCursor, match="is not a cursor"):
        RecentStore(client, ENDING).page(1, after=cursor)


@pytest.mark.parametrize("cursor", ["0-1", "1-0", "9" * 19 + "-" + "9" * 19])
def test_any_place_of_a_redis_stream_is_a_cursor(client, cursor):
    assert RecentStore(client, ENDING).page(1, after=cursor).items == []


def test_counters_are_chosen_by_their_fields(store, row):
    store.append([row(1), row(2, "payments"), row(3)], 0)
    assert [counter["count"] for counter in store.counts(stream="orders")] == [2]
    assert store.counts(stream="nowhere") == []


def test_counters_of_an_earlier_release_are_read(client):
    client.hset(list_key(DEVIATION) + COUNTS_SUFFIX, '["orders","A"]', 3)
    assert RecentStore(client, DEVIATION).counts() == [{"stream": "orders", "event_type": "A", "kind": "", "count": 3}]


def test_what_is_delivered_is_queued_once_with_its_row(client, stores):
    webhook = RegisteredWebhook(
        id="w", url="http://x", secret="whsec_", stream="orders", pattern=None, is_enabled=True, registered_us=0
    )
    stores.webhooks.put(webhook)
    rows = [made(1, kind="correction"), made(2, "payments", kind="correction"), made(3, kind="correction")]
    for _ in range(2):
        RecentStore(client, CORRECTION).append(rows, 7, [webhook], 5)
    RecentStore(client, ENDING).append(rows, 7, [webhook], 5)
    claimed = stores.deliveries.claim(5, 1, 9)
    assert [(found.id, found.queued_us, found.body) for found in claimed] == [
        ("w:r1", 5, rows[0].body.decode()),
        ("w:r3", 5, rows[2].body.decode()),
    ]


def test_endings_are_counted_by_their_reason(client):
    store = RecentStore(client, ENDING)
    by = {"form": "p2", "constraints": ["exclusive(A, B)", "prior(B, C)"], "atom": "C c"}
    store.append([made(1, **by), made(2, **by), made(3, form="end", constraints=[], atom=None)], 0)
    assert store.counts() == [
        {"stream": "orders", "pattern": "p", "form": "end", "constraints": "", "atom": "", "count": 1},
        {
            "stream": "orders",
            "pattern": "p",
            "form": "p2",
            "constraints": "exclusive(A, B), prior(B, C)",
            "atom": "C c",
            "count": 2,
        },
    ]


def test_what_is_not_listed_is_counted_once(client):
    store = RecentStore(client, ENDING)
    by = {"form": "p2", "constraints": ["exclusive(A, B)"], "atom": "C c"}
    store.append([made(1, **by)], 3)
    for _ in range(2):
        store.count([made("x", **by, count=41), made("y", **{**by, "form": "end"}, count=2)], 3)
    assert [(counter["form"], counter["count"]) for counter in store.counts()] == [("end", 2), ("p2", 42)]
    assert [record["id"] for record in store.page(9).items] == ["r1"]
