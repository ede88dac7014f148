"""The console in a real browser, over the whole service."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.builders.browser import chromium, console_of, reading

pytestmark = [
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.lengthy,
    pytest.mark.browser,
]

STREAM = "console_orders"


def event(number: int, key: str, kind: str) -> dict[str, object]:
    return {
        "specversion": "1.0",
        "id": f"{key}-{number}",
        "source": "console",
        "type": kind,
        "subject": key,
        "time": f"2026-01-01T00:00:{number:02}Z",
        "data": {},
    }


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright, chromium(playwright) as started:
        yield started


@pytest.fixture(scope="module")
def address(service):
    with console_of(service.url) as address:
        yield address


@pytest.fixture(scope="module")
def filled(service):
    """The service with a stream and a pattern."""
    service.client.post("/streams", {"name": STREAM, "end_events": ["Z"]})
    service.client.post("/patterns", {"stream": STREAM, "text": "PATTERN console_late EVENT SEQ(A a, B b)"})
    return service


def send(service, *events) -> None:
    service.client.post("/events", list(events), stream=STREAM)


def test_alerts_appear_within_two_seconds(filled, address, browser):
    with reading(browser, address, filled.api_key) as reader:
        page = reader.go(f"/alerts?stream={STREAM}")
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        send(filled, event(1, "first", "A"), event(2, "first", "B"))
        began = time.monotonic()
        expect(page.get_by_role("link", name="first")).to_be_visible()
        assert time.monotonic() - began < 2
        page.get_by_role("link", name="console_late").click()
        expect(page.get_by_role("heading", name="console_late in first")).to_be_visible()
        assert reader.complaints == []
