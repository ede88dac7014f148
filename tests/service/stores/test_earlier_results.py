"""Results of the first store format are read as before, once the store was brought up to date."""

import re
from pathlib import Path

import orjson
import pytest

from service.errors import RecordFormatError, UnknownAlert
from service.migrations import MIGRATIONS, bring_up_to_date
from service.runtime import Stores
from service.stores import Acknowledgement, AlertFilter, KeyPart, Keyspace, Note, RegisteredWebhook, move_to_blocks
from tests.builders.service import settings_for, sink_row

pytestmark = pytest.mark.redis

STORE = Path(__file__).parent / "golden" / "results-v1.json"
"""``fill`` and ``answers`` of the release that wrote format 1."""

KEPT = 12
ALERT_FILTERS = [
    AlertFilter(),
    AlertFilter(stream="orders"),
    AlertFilter(pattern="p"),
    AlertFilter(stream="orders", pattern="p"),
    AlertFilter(stream="late", pattern="p"),
    AlertFilter(pattern="gone"),
    AlertFilter(key="k1"),
    AlertFilter(is_acknowledged=True),
]


def settings(url, **limits):
    return settings_for(url, limits={"alerts_kept": KEPT, "recent_kept": 18, **limits})


def row(kind, number, **fields):
    stream = ("orders", "late", "orders")[number % 3]
    body = {"id": f"{kind}-{number}", "stream": stream, "pattern": "pq"[number % 2], "key": f"k{number % 4}", **fields}
    body["detected_at"] = f"2026-01-01T00:00:{number % 60:02}Z"
    return sink_row(kind=kind, stream=stream, id=body["id"], body=orjson.dumps(body))


def fill(stores):
    """Write results, more alerts than are kept; the last micro-batch is written twice."""
    webhook = RegisteredWebhook(
        id="w", url="http://x", secret="whsec_", stream=None, pattern=None, is_enabled=True, registered_us=0
    )
    stores.webhooks.put(webhook)
    for epoch in range(6):
        alerts = [row("alert", number, would_be_lost=number % 5 == 0) for number in range(10 * epoch, 10 * epoch + 10)]
        endings = [
            row("ending", number, form="p2", constraints=["prior(A, B)"], atom=None)
            for number in range(3 * epoch, 3 * epoch + 3)
        ]
        for _ in range(1 + (epoch == 5)):
            stores.alerts.append(alerts, [webhook], 5, epoch)
            stores.results["ending"].append(endings, epoch)
            stores.results["correction"].append([row("correction", epoch, alert="alert-1")], epoch, [webhook], 5)
    stores.alerts.marks.acknowledge("alert-58", Acknowledgement(at_us=5, by="ann"))
    stores.alerts.marks.add_note("alert-57", Note(id="n", at_us=6, text="t"))


def answers(stores):
    """The answers of everything that reads results, as JSON values."""
    alerts = stores.alerts
    found = {"pages": [], "newest": alerts.newest(), "trimmed": alerts.trimmed(), "queued": stores.deliveries.queued()}
    for wanted in ALERT_FILTERS:
        after = "0"
        while True:
            page = alerts.page(wanted, after=after, limit=5)
            found["pages"].append([page.items, page.cursors, page.after, page.has_more])
            after = page.after
            if not page.has_more:
                break
    found["counts"] = [[list(name), count] for name, count in alerts.counts().items()]
    found["lost"] = [[list(name), count] for name, count in alerts.lost_counts().items()]
    found["last"] = [alerts.last(stream, pattern) for stream in ("orders", "late") for pattern in "pq"]
    found["bodies"] = [alerts.body(f"alert-{number}").decode() for number in range(50, 60)]
    found["notes"] = [note.text for note in alerts.marks.notes("alert-57")]
    for name in ("ending", "correction"):
        store = stores.results[name]
        page = store.page(4, stream="orders")
        pages = [[page.items, page.next]]
        while page.next is not None:
            page = store.page(4, stream="orders", after=page.next)
            pages.append([page.items, page.next])
        found[name] = [pages, store.page(99).items, store.counts()]
    return found


CREATED = re.compile(rb',\\?"created_at\\?":\\?"[^"\\]*\\?"')


def without_cursors(found):
    lists = {name: [[records for records, _ in found[name][0]], *found[name][1:]] for name in ("ending", "correction")}
    return {**found, **lists}


@pytest.fixture
def golden():
    return orjson.loads(STORE.read_bytes())


@pytest.fixture
def earlier(client, server_url, golden):
    """The stores of the former release, as they are."""
    for key, kind, expires_ms, values in golden["store"]:
        texts = tuple(value.encode("latin-1") for value in values)
        Keyspace(client).write(KeyPart(key=key.encode(), kind=kind, expires_ms=expires_ms, values=texts))
    return Stores(client, server_url, settings(server_url))


def test_an_earlier_store_gives_the_same_answers(earlier, client, golden):
    bring_up_to_date(client)
    assert answers(earlier) == golden["answers"]
    assert not [key for key in Keyspace(client).names() if b"alerts:bodies" in key or b"alerts:index" in key]
    for _ in range(2):
        move_to_blocks(client, lambda: None)
    assert answers(earlier) == golden["answers"]


def test_a_store_of_today_gives_the_answers_of_the_earlier_one(client, server_url, golden):
    stores = Stores(client, server_url, settings(server_url))
    fill(stores)
    found = orjson.loads(CREATED.sub(b"", orjson.dumps(answers(stores))))  # which the earlier one did not store
    assert without_cursors(found) == without_cursors(golden["answers"])


def test_a_move_that_is_killed_begins_again(earlier, client, golden, monkeypatch):
    def killed():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move_to_blocks(client, killed)
    move_to_blocks(client, lambda: None)
    assert answers(earlier) == golden["answers"]


def test_an_earlier_store_goes_on(earlier, client, server_url):
    bring_up_to_date(client)
    assert earlier.alerts.append([row("alert", 59), row("alert", 61)], [], 0, 9) == 1
    assert [alert["id"] for alert in earlier.alerts.page(after="60").items] == ["alert-61"]
    many = [row("alert", number) for number in range(100, 200)]
    assert earlier.alerts.append(many, [], 0, 10) == 100
    with pytest.raises(UnknownAlert):
        earlier.alerts.get("alert-58")
    assert earlier.alerts.marks.acknowledgements(["alert-58"]) == [None]
    assert sum(earlier.alerts.trimmed().values()) + 2 * KEPT == 161
    assert len(earlier.alerts.page(limit=999).items) == 2 * KEPT
    listed = [row("ending", number, form="p1", constraints=[], atom=None) for number in range(100, 140)]
    earlier.results["ending"].append(listed, 11)
    assert [record["id"] for record in earlier.results["ending"].page(99).items] == [
        f"ending-{number}" for number in reversed(range(122, 140))
    ]


def test_alerts_of_an_unknown_format_are_not_moved(earlier, client):
    client.hset("forestall:alerts:bodies", "alert-59", b'{"format":2,"alert":{}}')
    with pytest.raises(RecordFormatError, match="'alert-59' does not have format 1"):
        bring_up_to_date(client, MIGRATIONS)
