"""The demo waits for its last alerts as long as some arrive."""

from __future__ import annotations

from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from service.client import Client
from service.delivery.receiver import Received
from service.demo import PATTERNS, Demo, _examples
from service.showcase import leave_open

CONSOLE = Path(__file__).parents[2] / "docs" / "console.md"
ORDERS, EXPECTED = 4, 3


@pytest.fixture
def drained(monkeypatch):
    """Lets a demo wait while a number of alerts arrives in each minute; returns its messages and the minutes."""

    def run(arrivals):
        clock, received = SimpleNamespace(minutes=0), Received()
        messages: list[str] = []
        each_minute = chain(arrivals, repeat(0))

        def sleep(_):
            clock.minutes += 1
            for _ in range(next(each_minute)):
                received.alerts[str(len(received.alerts))] = {}

        counts = {"a b": ORDERS * len(PATTERNS)}
        monkeypatch.setattr("service.demo._endings", lambda _: counts)
        monkeypatch.setattr("service.demo.time", SimpleNamespace(monotonic=lambda: 60.0 * clock.minutes, sleep=sleep))
        demo = Demo(orders=ORDERS, on_alert=lambda _: None, on_progress=lambda *_: None, say=messages.append)
        demo._drain(cast(Client, None), received, EXPECTED)
        return messages, clock.minutes

    return run


def test_slow_alerts_are_waited_for(drained):
    assert drained([1, 0, 0, 1, 0, 0, 1]) == ([], 7)


def test_alerts_that_do_not_arrive_are_given_up_with_a_message(drained):
    messages, minutes = drained([1, 1])
    assert minutes == 5
    assert messages == ["nothing has arrived for 180 s; 2 of 3 alerts are here"]


def test_the_patterns_are_printed():
    messages: list[str] = []
    client = SimpleNamespace(post=lambda *_: {"secret": "s"})
    demo = Demo(orders=ORDERS, on_alert=lambda _: None, on_progress=lambda *_: None, say=messages.append)
    demo._register(cast(Client, client), "http://h")
    assert messages[1:] == list(PATTERNS.values())


def test_examples_of_early_terminations_leave_out_ends_of_transactions():
    members = {"pattern": "EP1", "key": "order-1", "constraints": ["c"]}
    endings = [{**members, "form": form, "reason": form} for form in ("end", "p2")]
    client = SimpleNamespace(endings=SimpleNamespace(list=lambda **_: endings))
    assert _examples(cast(Client, client)) == ("EP1 order-1: p2",)


def test_the_documented_open_orders_are_those_of_the_demo(monkeypatch):
    monkeypatch.setattr("service.showcase.send_events", lambda *_: None)
    first, *_, last = leave_open(cast(Client, None), "orders", 0)
    assert f"`{first}` to `{last}`" in CONSOLE.read_text()
