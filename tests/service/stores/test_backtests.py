"""Backtests are kept with their results, up to a number, and change by compare-and-set."""

import orjson
import pytest

from service.errors import InvalidCursor, RecordFormatError, TooManyBacktests, UnknownBacktest
from service.stores import Backtest, BacktestStore

pytestmark = pytest.mark.redis


@pytest.fixture
def store(client):
    return BacktestStore(client, kept=3)


def backtest(number, **fields):
    return Backtest(id=f"bt_{number}", stream="orders", question={"q": number}, path=None, created_us=number, **fields)


def test_the_newest_comes_first(store):
    for number in range(3):
        store.add(backtest(number))
    assert store.all() == [backtest(2), backtest(1), backtest(0)]
    assert store.get("bt_1") == backtest(1)


def test_the_oldest_that_is_over_makes_room(store):
    for number in range(3):
        store.add(backtest(number))
    with pytest.raises(TooManyBacktests, match="3 backtests are already waiting"):
        store.add(backtest(3))
    store.advance("bt_1", ("queued",), status="done")
    store.keep_result("bt_1", {"events": 1}, [{"id": "a"}])
    store.add(backtest(3))
    assert [one.id for one in store.all()] == ["bt_3", "bt_2", "bt_0"]
    assert store.summary("bt_1") is None
    assert store.alerts("bt_1").items == []


def test_a_change_needs_the_status_that_is_expected(store):
    store.add(backtest(0))
    assert store.advance("bt_0", ("running",), progress=0.5) is None
    assert store.advance("bt_0", ("queued",), status="running") == backtest(0, status="running")
    assert store.get("bt_0").is_over is False
    with pytest.raises(UnknownBacktest, match="bt_9"):
        store.advance("bt_9", ("queued",), status="running")


def test_alerts_come_in_pages(store):
    store.add(backtest(0))
    store.keep_result("bt_0", {}, [{"n": number} for number in range(450)])
    first = store.alerts("bt_0", limit=400)
    second = store.alerts("bt_0", after=first.after, limit=400)
    assert [alert["n"] for alert in first.items + second.items] == list(range(450))
    assert (first.has_more, second.has_more, second.after) == (True, False, "450")
    store.keep_result("bt_0", {}, [{"n": 7}])  # another attempt
    assert store.alerts("bt_0").items == [{"n": 7}]


@pytest.mark.parametrize("cursor", ["-1", "x", "", "9" * 20, "9" * 5000, "１"])
def test_an_invented_cursor_is_refused(store, cursor):
    with pytest.raises(InvalidCursor):
        store.alerts("bt_0", after=cursor)


def test_a_record_of_another_format_is_refused(store, client):
    store.add(backtest(0))
    client.hset("forestall:backtests", "bt_0", b'{"format":9}')
    with pytest.raises(RecordFormatError):
        store.get("bt_0")


@pytest.mark.parametrize(
    ("member", "fault"),
    [({"colour": "red"}, "members that this release does not know: colour"), ({"path": 7}, "is damaged: path: ")],
)
def test_a_record_with_other_members_is_refused(store, client, member, fault):
    store.add(backtest(0))
    stored = orjson.loads(client.hget("forestall:backtests", "bt_0"))
    client.hset("forestall:backtests", "bt_0", orjson.dumps(stored | member))
    with pytest.raises(RecordFormatError, match=fault):
        store.get("bt_0")


def test_the_lease_is_for_one_holder(store, client):
    assert store.lease("a", 60_000)
    assert store.lease("a", 60_000)
    assert not store.lease("b", 60_000)
    client.delete("forestall:backtests:lease")
    assert store.lease("b", 60_000)
