"""The live list of alerts in a browser: every alert is in the table, or on a page to which "Older" leads."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.builders.browser import chromium, reading
from tests.builders.console import add_alerts
from tests.console.conftest import KEY

pytestmark = [pytest.mark.redis, pytest.mark.browser, pytest.mark.slow]

expect.set_options(timeout=120_000)  # a machine may be busy


def ids_on(page):
    return page.eval_on_selector_all("#alerts tbody tr", "rows => rows.map(row => row.dataset.id)")


def test_every_alert_is_in_the_table_or_after_it(address, orders, stores, reader):
    ids = [f"{number:032x}" for number in range(140)]

    def add(first, last):
        add_alerts(stores, *({"id": id_, "key": id_} for id_ in ids[first:last]))

    add(0, 60)
    with sync_playwright() as playwright, chromium(playwright) as browser, reading(browser, address, KEY) as window:
        for first, last, rows in ((60, 63, 53), (63, 133, 50), (133, 140, 57)):  # 70 at once are more than a page
            page = window.go("/alerts")
            expect(page.get_by_text("live", exact=True)).to_be_visible()
            add(first, last)
            expect(page.get_by_role("link", name=ids[last - 1], exact=True)).to_be_visible()
            shown = ids_on(page)
            assert len(shown) == rows
            while page.locator("[rel=next]").count():
                page.goto(page.eval_on_selector("[rel=next]", "link => link.href"))
                shown += ids_on(page)
            assert shown == ids[:last][::-1]
        assert window.complaints == []
    reader.submit("/webhooks/none", action="enable")  # pages no longer show what this test has read
