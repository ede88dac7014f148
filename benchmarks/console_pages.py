"""Cost of the console: its first page, its frame times at 200 alerts a second, the load of twenty consoles on the API.

The whole service runs as in production. A Chromium measures the first page and the longest time between two frames of
the list of alerts. For the API, twenty sessions refresh the overview every two seconds and follow alerts, as pages do.
Rounds with and without consoles take turns. The measured latency is that of a request for a page of alerts, while 200
events a second are sent. Then twenty sessions show each view in turn, and the requests and the CPU time of the API are
counted. These counts depend less on other load of the machine.

    scripts/bench console_pages --seconds=60
    scripts/bench console_pages --seconds=60 --only-api   # the last part: no Chromium
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import shutil
import threading
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import unescape
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from playwright.sync_api import CDPSession, sync_playwright

from service.processes.temporary import TemporaryService, running

STREAM = "pages"
CONSOLES = 20
RATE = 200
_EVERY_S = 0.1
_READ_EVERY_S = 0.05
_ROUNDS = 3
_FRAMES = """() => { window.longest = 0; let last = performance.now();
  const step = (now) => {
    window.longest = Math.max(window.longest, now - last); last = now; requestAnimationFrame(step) };
  requestAnimationFrame(step) }"""
VIEWS = ("/", "/alerts", "/transactions", f"/streams?stream={STREAM}", "/patterns/each", "/incidents", "/webhooks")
_PERIOD = re.compile(r'data-refresh="(\d+)"')
_FEED = re.compile(r'data-live="([^"]+)" data-after="([^"]+)"')
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def main() -> None:
    """Print the figures."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only-api", action="store_true")
    wanted = parser.parse_args()
    seconds = 5.0 if wanted.quick else wanted.seconds
    with TemporaryDirectory() as folder, running(Path(folder), has_console=True) as service:
        client = service.client
        client.request("POST", "/streams", body={"name": STREAM})
        client.request("POST", "/patterns", body={"stream": STREAM, "text": "PATTERN each EVENT SEQ(A a)"})
        with _sending(service):
            time.sleep(3)
            if not wanted.only_api:
                _measure_browser(service, seconds)
                _measure_api(service, seconds / (2 * _ROUNDS))
            _measure_requests(service, seconds / len(VIEWS))


@contextmanager
def _sending(service: TemporaryService) -> Iterator[None]:
    """Send events, each of which raises an alert, at a steady rate while the block runs."""
    stop = threading.Event()

    def send() -> None:
        number, began = 0, time.monotonic()
        while not stop.wait(max(0.0, began + number / RATE - time.monotonic())):
            events = [
                {"id": f"e{one}", "type": "A", "time": int(time.time() * 1e6), "key": f"k{one}", "data": {}}
                for one in range(number, number + int(RATE * _EVERY_S))
            ]
            number += len(events)
            service.client.request("POST", "/events", query={"stream": STREAM}, body=events)

    thread = threading.Thread(target=send, name="sending")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _measure_browser(service: TemporaryService, seconds: float) -> None:
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{service.console}/login")
        page.get_by_label("API key").fill(service.api_key)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_load_state()
        paints = []
        for _ in range(5):
            page.goto(f"{service.console}/", wait_until="load")
            page.wait_for_timeout(300)
            paints.append(page.evaluate(_PAINT))
        print(f"first page painted after, ms        {sorted(paints)[2]:8.0f}  (worst {max(paints):.0f})")
        page.goto(f"{service.console}/alerts")
        page.wait_for_timeout(1_000)
        before = page.evaluate("document.querySelector('#alerts tbody tr').dataset.id")
        page.evaluate(_FRAMES)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        before_s = _busy_s(session)
        page.wait_for_timeout(seconds * 1_000)
        busy = {name: one - before_s[name] for name, one in _busy_s(session).items()}
        print(f"longest frame at {RATE} alerts/s, ms     {page.evaluate('window.longest'):8.0f}")
        parts = ", ".join(f"{name} {one / seconds:.3f}" for name, one in busy.items())
        print(f"work of its main thread, share      {parts}")
        assert before != page.evaluate("document.querySelector('#alerts tbody tr').dataset.id"), "no alert has come"
        browser.close()


def _busy_s(session: CDPSession) -> dict[str, float]:
    """Return the seconds of work of a page's main thread so far, by kind."""
    metrics = {one["name"]: float(one["value"]) for one in session.send("Performance.getMetrics")["metrics"]}
    return {name: metrics[f"{name}Duration"] for name in ("Script", "Layout", "RecalcStyle", "Task")}


def _measure_api(service: TemporaryService, seconds: float) -> None:
    latencies: dict[int, list[float]] = {0: [], CONSOLES: []}
    process = Path(f"/proc/{service.supervisor.pid('console')}")
    used = 0.0
    for _ in range(_ROUNDS):
        for consoles in latencies:
            found, used_s = _read_beside(service, consoles, seconds)
            latencies[consoles] += found
            used += used_s if consoles else 0.0
    for consoles, found in latencies.items():
        half, most = _percentile(found, 0.5), _percentile(found, 0.99)
        print(f"GET /v1/alerts, {consoles:2} consoles, ms       {half:8.1f}  p99 {most:.1f}")
    share = used / (_ROUNDS * seconds)
    print(f"console process, {CONSOLES} consoles          {share:8.2f}  cores, {_resident_bytes(process) / 1e6:.0f} MB")


def _measure_requests(service: TemporaryService, seconds: float) -> None:
    """Print the requests of consoles for each view, and the API's CPU time without its share for sending events."""
    posts, _, idle_s = _work(service, seconds)
    for view in VIEWS:
        taken, asked, used_s = _work(service, seconds, view)
        busy_ms = 1_000 * (used_s - idle_s * taken / posts) / seconds
        print(f"API, {CONSOLES} consoles at {view:22} {asked / seconds:6.1f} requests/s, {busy_ms:6.0f} ms of CPU/s")


def _work(service: TemporaryService, seconds: float, *views: str) -> tuple[int, int, float]:
    """Return the batches of events, GETs and CPU seconds of the API while consoles show the given views."""
    with _consoles(service, *views):
        process = Path(f"/proc/{service.supervisor.pid('api')}")
        (taken, asked), used = _requests(service), _cpu_s(process)
        time.sleep(seconds)
        (more_taken, more_asked), used_later = _requests(service), _cpu_s(process)
        return more_taken - taken, more_asked - asked, used_later - used


def _requests(service: TemporaryService) -> tuple[int, int]:
    """Return the batches of events and the GETs of the API since its start, without requests for metrics."""
    lines = httpx.get(f"{service.url}/metrics", headers=_rights(service), timeout=60.0).text.splitlines()
    counts = [one for one in lines if one.startswith("forestall_http_request_seconds_count") and "metrics" not in one]
    totals = [
        sum(float(one.split()[-1]) for one in counts if f'method="{method}"' in one) for method in ("POST", "GET")
    ]
    return int(totals[0]), int(totals[1])


def _rights(service: TemporaryService) -> dict[str, str]:
    return {"Authorization": f"Bearer {service.api_key}"}


def _cpu_s(process: Path) -> float:
    """Return the CPU time of a process so far, in seconds."""
    fields = (process / "stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(process: Path) -> int:
    return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _read_beside(service: TemporaryService, consoles: int, seconds: float) -> tuple[list[float], float]:
    """Read alerts while another process has consoles open.

    Returns the latencies in ms, and the CPU seconds of the console.
    """
    found: list[float] = []
    process = Path(f"/proc/{service.supervisor.pid('console')}")
    with (
        _consoles(service, *(("/", "/alerts") if consoles else ())),
        httpx.Client(base_url=service.url, headers=_rights(service), timeout=60.0) as client,
    ):
        end, used = time.monotonic() + seconds, _cpu_s(process)
        while time.monotonic() < end:
            began = time.perf_counter()
            client.get("/v1/alerts", params={"limit": 20}).raise_for_status()
            found.append(1_000 * (time.perf_counter() - began))
            time.sleep(_READ_EVERY_S)
        used = _cpu_s(process) - used
    return found, used


@contextmanager
def _consoles(service: TemporaryService, *views: str) -> Iterator[None]:
    """Keep twenty consoles open in another process, each at one of the views. Without a view, open none."""
    if not views:
        yield
        return
    context = multiprocessing.get_context("spawn")
    opened = context.Semaphore(0)
    beside = context.Process(target=_open_consoles, args=(service.console, service.api_key, views, opened))
    beside.start()
    for _ in range(CONSOLES * len(views)):
        opened.acquire()
    try:
        yield
    finally:
        beside.terminate()
        beside.join()


def _open_consoles(address: str, key: str, views: Sequence[str], opened: Semaphore) -> None:
    async def run() -> None:
        await asyncio.gather(*(_console(address, key, view, opened) for _ in range(CONSOLES) for view in views))

    asyncio.run(run())


async def _console(address: str, key: str, view: str, opened: Semaphore) -> None:
    """Act as one open console: show a view and refresh it as often as the page's script does, or follow the alerts."""
    headers = {"Sec-Fetch-Site": "same-origin"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=120.0) as http:
        page = ""
        while not page:  # a busy API may refuse the request
            await http.post("/login", content=f"key={key}".encode())
            answer = await http.get(view)
            page = answer.text if answer.status_code == 200 else ""
            await asyncio.sleep(0 if page else 1)
        opened.release()
        if feed := _FEED.search(page):
            await _follow(http, f"{unescape(feed[1])}&after={feed[2]}")
        period_s = min((int(one) for one in _PERIOD.findall(page)), default=0)
        while period_s:
            await asyncio.sleep(period_s)
            await http.get(view, headers={"X-Refresh": str(period_s)})


async def _follow(http: httpx.AsyncClient, path: str) -> None:
    async with http.stream("GET", path) as answer:
        async for _ in answer.aiter_bytes():
            pass


def _percentile(found: Sequence[float], share: float) -> float:
    return sorted(found)[int(share * (len(found) - 1))]


if __name__ == "__main__":
    main()
