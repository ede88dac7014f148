"""Lists that are too long for a page: they have further pages, or the page says how many items it leaves out."""

import re

import pytest

from tests.builders.console import add_alerts

pytestmark = pytest.mark.redis


def boxes(text):
    return re.findall(r'<a href="/streams\?stream=([^"#]+)#chosen" class="stream">', text)


def test_streams_have_pages(reader, http):
    names = [f"s{number:02}" for number in range(65)]
    for name in names:
        assert http.post("/streams", json={"name": name}).status_code == 201
    reader.submit("/webhooks/none", action="enable")  # pages no longer show what earlier tests have read
    first = reader.text("/streams")
    assert "60 of 65 streams" in first
    (path,) = re.findall(r'href="([^"]+)" rel="next"', first)
    second = reader.text(path.replace("&amp;", "&"))
    assert "5 of 65 streams" in second
    assert boxes(first) + boxes(second) == names
    chosen = reader.text("/streams?stream=s63")
    assert boxes(chosen) == names[60:]
    assert "<h2>s63 " in chosen


def test_receivers_that_the_overview_does_not_check_are_said(reader, orders, monkeypatch):
    monkeypatch.setattr("console.views.overview._MOST_WEBHOOKS", 2)
    for port in (7, 8):
        assert orders.post("/webhooks", json={"url": f"http://127.0.0.1:{port}/"}).status_code == 201
    cut = "Only the first 2 webhooks and the first 2 other receivers are checked here."
    reader.submit("/webhooks/none", action="enable")
    assert cut not in reader.text("/")
    assert orders.post("/webhooks", json={"url": "http://127.0.0.1:9/"}).status_code == 201
    reader.submit("/webhooks/none", action="enable")
    assert cut in reader.text("/")


def test_receivers_that_are_not_asked_for_deliveries_are_said(reader, orders, stores, monkeypatch):
    monkeypatch.setattr("console.views.alerts._MOST_RECEIVERS", 1)
    add_alerts(stores, {})
    for port in (8, 9):
        assert orders.post("/webhooks", json={"url": f"http://127.0.0.1:{port}/"}).status_code == 201
    reader.submit("/webhooks/none", action="enable")
    assert "Only the first webhooks and other receivers, 1 of each, were asked." in reader.text(f"/alerts/{0:032x}")


def test_a_pattern_says_how_many_versions_it_has(reader, orders, monkeypatch):
    monkeypatch.setattr("console.views.patterns._MOST_VERSIONS", 2)
    for hours in (1, 2):
        changed = {"stream": "orders", "text": f"PATTERN p EVENT SEQ(A a, B b) WITHIN {hours} h"}
        assert orders.put("/patterns/p", json=changed).json()["version"] == hours + 1
    text = reader.text("/patterns/p")
    assert "the newest 2 of 3; <code>forestall patterns versions p</code> lists all" in text
    assert "<summary>Version 1 " not in text


def test_a_transaction_links_to_the_rest_of_its_alerts(reader, orders, stores):
    posted = [{"id": "e1", "type": "A", "time": 1_000, "subject": "k"}]
    assert orders.post("/events?stream=orders", json=posted).json()["rejected"] == []
    add_alerts(stores, *({"key": "k"} for _ in range(19)))
    link = 'href="/alerts?stream=orders&amp;key=k"'
    assert link not in reader.text("/transactions/orders/k")
    add_alerts(stores, *({"key": "k"} for _ in range(21)))
    assert link in reader.text("/transactions/orders/k")
