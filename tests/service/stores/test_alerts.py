import orjson
import pytest

from service.errors import InvalidCursor, RecordFormatError, UnknownAlert
from service.stores import RegisteredWebhook
from service.stores.alerts import BODIES_KEY
from service.testing import SinkRow

pytestmark = pytest.mark.redis


def alert(number, *, stream="orders", pattern="p"):
    body = orjson.dumps({"id": f"a{number}", "stream": stream, "pattern": pattern, "key": "Zoë"})
    return SinkRow(kind="alert", stream=stream, id=f"a{number}", body=body)


def webhook(name, **changes):
    fields = {"url": "http://x", "secret": "whsec_", "stream": None, "pattern": None}
    return RegisteredWebhook(**{**fields, "id": name, "is_enabled": True, "registered_us": 0, **changes})


@pytest.fixture
def alerts(stores):
    return stores.alerts


def ids(page):
    return [found["id"] for found in page.alerts]


def test_an_alert_is_kept_byte_for_byte(alerts):
    assert alerts.append([alert(1)], [], 0) == 1
    assert alerts.body("a1") == alert(1).body
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


def test_lists_are_filtered_by_stream_and_pattern(alerts):
    alerts.append([alert(1), alert(2, pattern="q"), alert(3, stream="payments"), alert(4)], [], 0)
    assert ids(alerts.page(stream="orders")) == ["a1", "a2", "a4"]
    assert ids(alerts.page(pattern="p")) == ["a1", "a3", "a4"]
    assert ids(alerts.page(stream="orders", pattern="p")) == ["a1", "a4"]
    assert ids(alerts.page(stream="nothing")) == []


@pytest.mark.parametrize("cursor", ["-1", "1-0", "x", "", "9" * 30, "9" * 5000, "١"])
def test_a_wrong_cursor_is_refused(alerts, cursor):
    with pytest.raises(InvalidCursor):
        alerts.page(after=cursor)


def test_an_unknown_alert_is_named(alerts):
    with pytest.raises(UnknownAlert, match="'a1'"):
        alerts.get("a1")


def test_an_alert_of_unknown_format_is_refused(alerts, client):
    client.hset(BODIES_KEY, "a1", b'{"format":2,"alert":{}}')
    with pytest.raises(RecordFormatError, match="a1"):
        alerts.get("a1")
