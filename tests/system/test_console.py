"""The console in a real browser, over the whole service: every page with real events, in both themes and two widths."""

from __future__ import annotations

import io
import os
import signal

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import expect, sync_playwright

from house import ROOT
from service.demo import PATTERNS
from service.processes.temporary import require_ready
from service.sending import send_events
from service.showcase import MODEL, add_aggregate, leave_open
from tests.builders.browser import chromium, console_of, reading
from tests.builders.waiting import until
from workflows import OrderSettings, OrderWorkload, SimulationSettings, generate_events

pytestmark = [
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.lengthy,
    pytest.mark.browser,
]

expect.set_options(timeout=120_000)  # a machine may be busy; where a time is asserted, the test measures it

STREAM = "shop_orders"
LATE = "PATTERN late EVENT SEQ(A a, B b)"
EVIL = "<img src=x onerror=alert(1)>"
EVIL_STREAM = "returns"
EVIL_MODEL = f"name: evil\ntree: {{sequence: [A, '{EVIL}', '<script>alert(2)</script>']}}\n"
PICTURES = ROOT / "docs" / "pictures"
LARGEST_PICTURE = 60_000
FAULTY = "PATTERN paid_cancelled\nEVENT SEQ(ReceivePayment p, CancelOrder c)\nWHERE q.price > 200"
SERIOUS = ("serious", "critical")
PAGES = {
    "overview": f"/?stream={STREAM}",
    "alerts": f"/alerts?stream={STREAM}",
    "alert": "",
    "incidents": f"/incidents?stream={STREAM}&state=",
    "transactions": f"/transactions?stream={STREAM}",
    "transaction": "",
    "process": f"/process?stream={STREAM}",
    "patterns": f"/patterns?stream={STREAM}",
    "pattern": "/patterns/Q1",
    "editor": f"/editor?stream={STREAM}",
    "streams": f"/streams?stream={STREAM}",
    "operator": "/streams?operator=steps",
    "webhooks": f"/webhooks?stream={STREAM}",
    "new-webhook": f"/webhooks/new?stream={STREAM}",
    "webhook": "",
    "ask": "/ask?aggregate=steps&by=type",
    "dead-letters": f"/dead-letters?stream={STREAM}",
}


def event(number: int, key: str, kind: str) -> dict[str, object]:
    return {
        "specversion": "1.0",
        "id": f"{key}-{number}",
        "source": "console",
        "type": kind,
        "subject": key,
        "time": f"2026-01-01T00:00:{number:02}Z",
        "data": {"note": EVIL},
    }


def send(service, stream, *events) -> None:
    service.client.request("POST", "/events", body=list(events), query={"stream": stream})


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
    """The service with a stream that has everything, and one whose names want to be HTML."""
    client = service.client
    ends = ["FinishOrder", "CancelOrder", "RejectOrder"]
    client.request("POST", "/streams", body={"name": STREAM, "end_events": ends, "description": "Orders of a shop."})
    client.request("POST", "/streams", body={"name": EVIL_STREAM, "description": EVIL})
    for name, model, stream in (("shop_process", MODEL, STREAM), ("evil", EVIL_MODEL, EVIL_STREAM)):
        headers = {"Content-Type": "application/yaml"}
        client.request("PUT", f"/workflows/{name}", query={"stream": stream}, body=model, headers=headers)
    add_aggregate(client, STREAM)
    for text in PATTERNS.values():
        client.request("POST", "/patterns", body={"stream": STREAM, "text": text, "severity": "high"})
    unguarded = {"stream": EVIL_STREAM, "text": LATE, "constraints": "off"}
    client.request("POST", "/patterns", body=unguarded)
    for stream in (STREAM, EVIL_STREAM):
        description = EVIL if stream == EVIL_STREAM else "the shop's tickets"
        webhook = {"stream": stream, "url": "http://127.0.0.1:9/alerts", "description": description}
        client.request("POST", "/webhooks", body=webhook)
        client.request("POST", "/events", query={"stream": stream}, body=[event(1, "k", "A"), {"id": EVIL}])
    simulated = SimulationSettings(traces=60, concurrent=20, interval_us=30_000_000, key_prefix="order-")
    events = list(generate_events(OrderWorkload(orders=OrderSettings(), stream=simulated), 42))
    send_events(client, STREAM, events, "orders")
    leave_open(client, STREAM, events[-1].time_us)
    send(service, EVIL_STREAM, event(1, EVIL, "A"), event(2, EVIL, "B"))
    query = {"stream": EVIL_STREAM, "limit": 1}
    until(lambda: client.request("GET", "/alerts", query=query)["items"], "an alert", service)
    return service


@pytest.fixture(scope="module")
def pages(filled):
    """The address of each page."""
    alert = filled.client.request("GET", "/alerts", query={"stream": STREAM, "limit": 1})["items"][0]["id"]
    webhook = filled.client.request("GET", "/webhooks", query={"stream": STREAM})["items"][0]["id"]
    endings = filled.client.request("GET", "/endings", query={"stream": STREAM, "order": "asc"})["items"]
    key = next(ending["key"] for ending in endings if ending["form"] != "end")
    own = {
        "alert": f"/alerts/{alert}",
        "webhook": f"/webhooks/{webhook}",
        "transaction": f"/transactions/{STREAM}/{key}",
    }
    return {**PAGES, **own}


@pytest.mark.parametrize(("theme", "width", "height"), [("light", 1280, 800), ("dark", 390, 844)])
def test_every_page_is_accessible_and_fits(filled, address, browser, pages, theme, width, height):
    size = {"width": width, "height": height}
    with reading(browser, address, filled.api_key, viewport=size, color_scheme=theme) as reader:
        for name, path in pages.items():
            page = reader.go(path)
            expect(page.locator("h1")).to_be_visible()
            found = Axe().run(page).response["violations"]
            assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in SERIOUS] == [], name
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert reader.complaints == []


def test_alerts_appear_without_a_reload_and_nothing_jumps(filled, address, browser):
    with reading(browser, address, filled.api_key, viewport={"width": 1280, "height": 500}) as reader:
        page = reader.go("/alerts")
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        page.evaluate("window.loaded = 'once'")
        send(filled, EVIL_STREAM, event(1, "first", "A"), event(2, "first", "B"))
        expect(page.get_by_role("link", name="first", exact=True)).to_be_visible()
        assert page.evaluate("window.loaded") == "once"
        page.evaluate("scrollTo(0, 400)")
        before = page.evaluate("[scrollY, document.querySelector('#alerts tbody tr').dataset.id]")
        send(filled, EVIL_STREAM, event(1, "second", "A"), event(2, "second", "B"))
        expect(page.get_by_role("button", name="1 new alert: show it")).to_be_attached()
        assert page.evaluate("document.querySelector('#alerts tbody tr').dataset.id") == before[1]
        page.evaluate("document.getElementById('live-more').click()")
        expect(page.get_by_role("link", name="second", exact=True)).to_be_visible()
        assert reader.complaints == []


def test_a_hidden_page_asks_for_nothing_and_catches_up(filled, address, browser):
    hide = """(hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    with reading(browser, address, filled.api_key) as reader:
        page = reader.go("/alerts")
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        page.evaluate(hide, True)
        send(filled, EVIL_STREAM, event(1, "unseen", "A"), event(2, "unseen", "B"))
        query = {"stream": EVIL_STREAM, "key": "unseen"}
        until(lambda: filled.client.request("GET", "/alerts", query=query)["items"], "an alert", filled)
        page.wait_for_timeout(1_500)
        assert page.get_by_role("link", name="unseen", exact=True).count() == 0
        page.evaluate(hide, False)
        expect(page.get_by_role("link", name="unseen", exact=True)).to_be_visible()


def test_names_of_others_are_never_html(filled, address, browser):
    """Keys, attributes, notes, models: a browser finds no element in them, and asks for nothing that they name."""
    alert = filled.client.request("GET", "/alerts", query={"stream": EVIL_STREAM, "limit": 1, "order": "asc"})
    alert_id = alert["items"][0]["id"]
    filled.client.request("POST", f"/alerts/{alert_id}/notes", body={"text": EVIL})
    key = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"
    with reading(browser, address, filled.api_key) as reader:
        reader.page.on("dialog", lambda dialog: reader.complaints.append(dialog.message))
        for path in (
            f"/alerts/{alert_id}",
            f"/alerts?stream={EVIL_STREAM}",
            f"/transactions?stream={EVIL_STREAM}",
            f"/transactions/{EVIL_STREAM}/{key}",
            f"/process?stream={EVIL_STREAM}",
            f"/streams?stream={EVIL_STREAM}",
            f"/dead-letters?stream={EVIL_STREAM}",
            "/webhooks",
        ):
            page = reader.go(path)
            assert page.locator("main").get_by_text("onerror=alert(1)").count() > 0, path
            assert page.locator("main img").count() == page.locator("main script").count() == 0, path
        assert reader.complaints == []


def test_a_pattern_is_written_tried_and_registered(filled, address, browser):
    with reading(browser, address, filled.api_key) as reader:
        page = reader.go(f"/editor?stream={STREAM}")
        text = page.get_by_label("Pattern", exact=True)
        text.fill("PATTERN quick\nEVENT SEQ(ReceivePayment p, CancelOrder c)\nWHERE q.id = 1")
        expect(page.locator("#fault")).to_contain_text("^ q is not an alias")
        line = page.evaluate("document.getElementById('fault').offsetTop")
        text.fill("PATTERN quick\nEVENT SEQ(UseLocalStock l, UseRemoteStock r)")
        expect(page.locator("#checked")).to_contain_text("the pattern can never match")
        text.fill("PATTERN quick\nEVENT SEQ(ReceivePayment p, CancelOrder c)")
        expect(page.locator("#checked")).to_have_text("It can match.")
        assert line > 80
        page.get_by_role("button", name="Dry run").click()
        expect(page.locator("#trial")).to_contain_text("it would have matched")
        page.get_by_role("button", name="Backtest over the log").click()
        expect(page.get_by_role("heading", name="Result")).to_be_visible(timeout=120_000)
        page.go_back()
        page.get_by_label("Pattern", exact=True).fill("PATTERN quick\nEVENT SEQ(ReceivePayment p, CancelOrder c)")
        page.get_by_role("button", name="Register").click()
        expect(page.get_by_role("heading", name="quick")).to_be_visible()
        assert reader.complaints == []


def test_the_keyboard_reaches_everything(filled, address, browser):
    with reading(browser, address, filled.api_key) as reader:
        page = reader.go(f"/alerts?stream={STREAM}")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
        page.keyboard.press("j")
        expect(page.locator("#alerts tbody tr").first.get_by_role("link").first).to_be_focused()
        page.keyboard.press("/")
        expect(page.get_by_label("Find a transaction")).to_be_focused()
        page.keyboard.type("order-1")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="order-1", exact=True)).to_be_visible()
        page.wait_for_load_state()  # a page is visible before its script runs
        page.keyboard.press("g")
        page.keyboard.press("p")
        expect(page.get_by_role("heading", name="Patterns")).to_be_visible()


def test_the_api_and_the_console_go_and_come_back(filled, address, browser):
    """No alert is lost meanwhile, and the page says that it waits."""
    with reading(browser, address, filled.api_key) as reader:
        page = reader.go("/alerts")
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        process = filled.supervisor.pid("api")
        assert process is not None
        os.kill(process, signal.SIGKILL)
        require_ready(filled.client, filled.supervisor)
        send(filled, EVIL_STREAM, event(1, "third", "A"), event(2, "third", "B"))
        expect(page.get_by_role("link", name="third", exact=True)).to_be_visible()
        reader.go("/")
        page.context.set_offline(True)
        expect(page.get_by_text("Connection lost")).to_be_visible()
        page.context.set_offline(False)
        expect(page.get_by_text("Connection lost")).to_be_hidden()


def test_the_pictures_of_the_manual_are_of_its_pages(filled, address, browser, pages, request):
    """With ``--pictures`` they are made again; pictures that the manual shows are small, and all of them exist."""
    shown = {f"{name}-{theme}.png" for name in pages for theme in ("light", "dark")}
    text = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    used = {name for name in shown if f"pictures/{name}" in text}
    if request.config.getoption("--pictures"):
        for theme in ("light", "dark"):
            size = {"width": 1180, "height": 760}
            with reading(browser, address, filled.api_key, viewport=size, color_scheme=theme) as reader:
                for name, path in pages.items():
                    if f"{name}-{theme}.png" in used:
                        page = reader.go(path)
                        if name == "editor":
                            page.get_by_label("Pattern", exact=True).fill(FAULTY)
                        page.wait_for_timeout(1_000)
                        picture = Image.open(io.BytesIO(page.screenshot()))
                        picture.convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE).save(
                            PICTURES / f"{name}-{theme}.png", optimize=True
                        )
    assert used == {file.name for file in PICTURES.glob("*.png")}
    assert all((PICTURES / name).stat().st_size <= LARGEST_PICTURE for name in used)
