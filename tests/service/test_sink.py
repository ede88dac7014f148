import orjson
import pytest

from pipeline import OutputRow, RowKind
from service import AlertSink, Registration

pytestmark = pytest.mark.redis


def row(kind, name, **fields):
    body = {"id": name, "stream": "s", "pattern": "p", "event_type": "A", "code": "c", **fields}
    return OutputRow(kind=RowKind(kind), stream="s", id=name, body=orjson.dumps(body), position="1-0", shard=0)


ROWS = [
    row("alert", "a1"),
    row("ending", "e1", form="p1", constraints=["prior(A, B)"], atom="A a"),
    row("alert", "a2"),
    row("deviation", "d1"),
    row("timeout", "t1", missing=["b", "c"]),
    row("dead-letter", "l1"),
    row("ending", "e2", form="p1", constraints=["prior(A, B)"], atom="A a"),
]


def test_every_row_lands_in_its_store_and_a_replay_changes_nothing(stores, settings, clock):
    Registration(stores, settings, clock).register_webhook("http://127.0.0.1:1/")
    sink = AlertSink(stores, clock)
    sink(ROWS[:3], 5)
    for _ in range(2):
        sink(ROWS, 5)
    assert [alert["id"] for alert in stores.alerts.page().alerts] == ["a1", "a2"]
    assert [ending["id"] for ending in stores.endings.recent(9)] == ["e2", "e1"]
    assert [counter["count"] for counter in stores.endings.counts()] == [2]
    assert stores.timeouts.counts() == [{"stream": "s", "pattern": "p", "missing": "b, c", "count": 1}]
    assert stores.deviations.counts() == [{"stream": "s", "event_type": "A", "count": 1}]
    assert stores.dead_letters.counts() == [{"stream": "s", "code": "c", "count": 1}]
    assert stores.deliveries.queued() == 2
    assert stores.deliveries.claim(clock.now_us() - 1, 1, 9) == []
    assert [delivery.alert for delivery in stores.deliveries.claim(clock.now_us(), 1, 9)] == ["a1", "a2"]


def test_nothing_needs_no_redis(stores, clock, client):
    client.close()
    AlertSink(stores, clock)([], 1)
    assert stores.alerts.page().alerts == []
