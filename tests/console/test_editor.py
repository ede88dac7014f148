"""The editor of patterns in a browser: what it says about a result that is no longer that of the text."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.builders.browser import chromium, reading
from tests.console.conftest import KEY

pytestmark = [pytest.mark.redis, pytest.mark.browser, pytest.mark.slow]

expect.set_options(timeout=120_000)  # a machine may be busy


def test_a_dry_run_of_an_earlier_text_says_so(address, orders, reader):
    with sync_playwright() as playwright, chromium(playwright) as browser, reading(browser, address, KEY) as window:
        page = window.go("/editor?stream=orders")
        note = page.get_by_text("the pattern has been changed since")
        text = "PATTERN two EVENT SEQ(A a, B b)"
        page.locator("#text").fill(text)
        page.locator("#dry-run").click()
        expect(page.get_by_text("it would have matched")).to_be_visible()
        expect(note).to_be_hidden()
        page.locator("#text").fill("PATTERN two EVENT SEQ(A a, C c)")
        expect(note).to_be_visible()
        page.locator("#text").fill(text)
        expect(note).to_be_hidden()
        page.locator("#f-constraints").select_option("off")
        expect(note).to_be_visible()
        page.locator("#dry-run").click()
        expect(note).to_be_hidden()
        assert window.complaints == []
