import orjson
import pytest
import structlog

from pipeline import OutputRow, RowKind
from service import AlertSink, WebhookDraft, WebhookLibrary
from service.stores import RegisteredWebhook

pytestmark = pytest.mark.redis


def row(kind, name, /, **fields):
    body = {"id": name, "stream": "s", "pattern": "p", "event_type": "A", "code": "c", **fields}
    return OutputRow(kind=RowKind(kind), stream="s", id=name, body=orjson.dumps(body), position="1-0", shard=0)


ROWS = [
    row("alert", "a1"),
    row("ending", "e1", form="p1", constraints=["prior(A, B)"], atom="A a"),
    row("alert", "a2"),
    row("deviation", "d1", kind="order", pattern=None),
    row("correction", "c1", alert="a1"),
    row("timeout", "t1", missing=["b", "c"]),
    row("dead-letter", "l1"),
    row("ending", "e2", form="p1", constraints=["prior(A, B)"], atom="A a"),
]


def test_every_row_lands_in_its_store_and_a_replay_changes_nothing(stores, settings, clock):
    WebhookLibrary(stores, settings, clock).register(WebhookDraft(url="http://127.0.0.1:1/"))
    sink = AlertSink(stores, clock)
    sink(ROWS[:3], 5)
    for _ in range(2):
        sink(ROWS, 5)
    assert [alert["id"] for alert in stores.alerts.page().alerts] == ["a1", "a2"]
    assert [ending["id"] for ending in stores.endings.recent(9)] == ["e2", "e1"]
    assert [counter["count"] for counter in stores.endings.counts()] == [2]
    assert stores.timeouts.counts() == [{"stream": "s", "pattern": "p", "missing": "b, c", "count": 1}]
    assert stores.deviations.counts() == [{"stream": "s", "event_type": "A", "kind": "order", "count": 1}]
    assert stores.corrections.counts() == [{"stream": "s", "pattern": "p", "count": 1}]
    assert stores.dead_letters.counts() == [{"stream": "s", "code": "c", "count": 1}]
    assert stores.deliveries.queued() == 3
    assert stores.deliveries.claim(clock.now_us() - 1, 1, 9) == []
    claimed = {delivery.alert: delivery.body for delivery in stores.deliveries.claim(clock.now_us(), 1, 9)}
    assert claimed == {"a1": None, "a2": None, "c1": ROWS[4].body.decode()[:-1] + ',"severity":"medium"}'}


def test_a_pattern_that_is_given_up_is_logged_and_counted(stores, clock):
    letters = [
        row("dead-letter", "l1", code="work-limit", version=2, key="k", event_id="e", work=7),
        row("dead-letter", "l2", code="match-limit"),
        row("dead-letter", "l3", pattern=None),
    ]
    with structlog.testing.capture_logs() as logged:
        AlertSink(stores, clock)(letters, 5)
    (line,) = logged
    assert (line["event"], line["log_level"]) == ("pattern-given-up", "warning")
    assert [line[name] for name in ("stream", "pattern", "key", "event_id", "work")] == ["s", "p", "k", "e", 7]
    assert [(found["code"], found["count"]) for found in stores.dead_letters.counts()] == [
        ("c", 1),
        ("match-limit", 1),
        ("work-limit", 1),
    ]
    assert [(found["pattern"], found["code"]) for found in stores.dead_letters.counts_by_pattern()] == [
        ("p", "match-limit"),
        ("p", "work-limit"),
    ]


@pytest.mark.parametrize(
    ("wanted", "delivered"),
    [
        ({"kinds": ("deviation",)}, {"d1"}),
        ({"kinds": ("deviation",), "pattern": "p"}, set()),
        ({"kinds": ("alert", "correction", "deviation"), "stream": "s"}, {"a1", "a2", "c1", "d1"}),
        ({"kinds": ("correction",), "pattern": "p"}, {"c1"}),
        ({"kinds": ("correction",), "pattern": "q"}, set()),
    ],
)
def test_a_webhook_gets_what_it_asks_for(stores, clock, wanted, delivered):
    fields = {"stream": None, "pattern": None, **wanted}
    stores.webhooks.put(
        RegisteredWebhook(id="w", url="http://x", secret="whsec_", is_enabled=True, registered_us=0, **fields)
    )
    AlertSink(stores, clock)(ROWS, 1)
    assert {delivery.alert for delivery in stores.deliveries.claim(clock.now_us(), 1, 9)} == delivered


def test_nothing_needs_no_redis(stores, clock, client):
    client.close()
    AlertSink(stores, clock)([], 1)
    assert stores.alerts.page().alerts == []


def test_what_shards_tell_of_themselves_is_kept_apart(stores, clock, client):
    told = OutputRow(
        kind=RowKind.STATS,
        stream="",
        id="x",
        body=orjson.dumps({"shard": 1, "entries": 1, "bytes": 2, "state_bytes": 3, "streams": {}}),
        position="4-0",
        shard=1,
    )
    for _ in range(2):
        AlertSink(stores, clock)([told, ROWS[0]], 5)
    (report,) = stores.pipeline_status.shards()
    assert (report.shard, report.position, report.state_bytes) == (1, "4-0", 3)
    assert [alert["id"] for alert in stores.alerts.page().alerts] == ["a1"]
    assert stores.alerts.counts() == {("s", "p"): 1}


def test_endings_that_are_but_counted_are_not_listed(stores, clock):
    body = {"id": "x", "stream": "s", "pattern": "p", "form": "p2", "constraints": [], "atom": "A a", "count": 7}
    counted = OutputRow(kind=RowKind.ENDING_COUNT, stream="s", id="x", body=orjson.dumps(body), position="4-0", shard=1)
    for _ in range(2):
        AlertSink(stores, clock)([counted], 5)
    assert [found["count"] for found in stores.endings.counts()] == [7]
    assert stores.endings.recent(9) == []
