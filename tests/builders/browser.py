"""Test helpers: a console on a real port, and a Chromium that is logged in."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright

from console import create_console
from tests.builders.api import serving

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MISSING = (
    "no Chromium is on PATH, which the tests of the console drive: install it (Debian: apt-get install chromium), or "
    "leave them out with -m 'not browser'"
)


@contextmanager
def console_of(url: str) -> Iterator[str]:
    """Serve a console of the service at ``url``; yields its address."""
    with serving(create_console(url)) as address:
        yield address


@contextmanager
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """The Chromium of this machine, started."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        raise FileNotFoundError(_MISSING)
    is_root = os.geteuid() == 0  # Chromium refuses to sandbox for root
    browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if is_root else [])
    try:
        yield browser
    finally:
        browser.close()


@dataclass(slots=True)
class Reader:
    """A person at a page of the console, with whatever the browser complains about."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        """Show a page of the console."""
        self.page.goto(self.address + path)
        return self.page


def is_fault(message: ConsoleMessage) -> bool:
    """Whether the browser logs an error of the page; the page repeats a request to a server that is too busy."""
    return message.type == "error" and not re.search(r"status of 50[34] ", message.text)


@contextmanager
def reading(browser: Browser, address: str, key: str, **options: Any) -> Iterator[Reader]:
    """A browser of its own that has logged in with a key."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(120_000)  # a machine may be busy
    reader = Reader(context.new_page(), address)
    reader.page.on("console", lambda message: reader.complaints.append(message.text) if is_fault(message) else None)
    reader.page.on("pageerror", lambda error: reader.complaints.append(str(error)))
    try:
        log_in(reader, key)
        yield reader
    finally:
        context.close()


def log_in(reader: Reader, key: str) -> None:
    """Log in with a key, and wait for the page."""
    page = reader.go("/login")
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_load_state()
