"""Pages for keys that are restricted to streams: what such a key may read is shown, and nothing unknown as a number."""

import re
from threading import Event, Thread

import pytest

from tests.api.routers.test_open_cases import match_until
from tests.builders.console import add_alerts, add_attempt
from tests.builders.service import HandClock

pytestmark = pytest.mark.redis


@pytest.fixture
def guest(visitor, http):
    """A visitor whose key may only read the streams ``first`` and ``second``, each with a pattern and a webhook."""
    for stream in ("first", "second"):
        assert http.post("/streams", json={"name": stream, "end_events": ["Z"]}).status_code == 201
        text = f"PATTERN of_{stream} EVENT SEQ(A a, B b)"
        assert http.post("/patterns", json={"stream": stream, "text": text}).status_code == 201
        hook = {"stream": stream, "url": f"http://127.0.0.1:9/{stream}", "description": f"pager of {stream}"}
        assert http.post("/webhooks", json=hook).status_code == 201
    key = http.post("/keys", json={"name": "guest", "scopes": ["read"], "streams": ["first", "second"]}).json()["token"]
    visitor.log_in(key)
    return visitor


def test_lists_show_all_streams_of_the_key(guest):
    webhooks = guest.text("/webhooks")
    assert ("pager of first" in webhooks, "pager of second" in webhooks) == (True, True)
    assert "<option>of_second</option>" in guest.text("/alerts?stream=second")


def test_deliveries_of_an_alert_are_those_of_its_stream(guest, http, stores):
    add_alerts(stores, {"stream": "second", "pattern": "of_second"})
    for hook in http.get("/webhooks").json()["items"]:
        add_attempt(stores, hook["id"], item=f"{0:032x}")
    text = guest.text(f"/alerts/{0:032x}")
    assert text.count("delivered 204") == 1
    assert "pager of second" in text


def test_the_number_of_alerts_is_unknown_without_the_metrics(guest, stores):
    add_alerts(stores, {"stream": "first", "pattern": "of_first"})
    assert re.findall(r'alerts\?pattern=of_first">([^<]*)<', guest.text("/?stream=first")) == ["\N{EN DASH}"]


def test_the_process_is_shown_without_the_picture_of_the_model(guest, http, stores):
    assert http.put("/workflows/fulfil", json={"tree": {"sequence": ["A", "B", "Z"]}}).status_code == 201
    assert http.put("/streams/first/workflow", json={"workflow": "fulfil"}).status_code == 200
    stores.heartbeat.beat(HandClock().now_us())
    is_over = Event()
    pipeline = Thread(target=match_until, args=(stores, is_over))
    pipeline.start()
    try:
        text = guest.text("/process?stream=first")
    finally:
        is_over.set()
        pipeline.join()
    assert "Time between steps" in text
    assert "needs a key that is not restricted" in text
