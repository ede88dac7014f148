"""Test helpers: the requests of a browser to a console, and the alerts that it shows."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import httpx
import orjson

from service.stores.records import encode
from tests.builders.service import sink_row

_TOKEN = re.compile(r'name="token" value="([^"]+)"')


class Visitor(httpx.Client):
    """The requests that a browser sends: it keeps cookies, and says where forms come from."""

    def __init__(self, address: str) -> None:
        headers = {"Sec-Fetch-Site": "same-origin", "Origin": address}
        super().__init__(base_url=address, headers=headers, timeout=300.0, verify=False)

    def log_in(self, key: str) -> httpx.Response:
        """Log in with a key."""
        return self.post("/login", content=httpx.QueryParams({"key": key, "next": "/"}).__str__().encode())

    def text(self, path: str) -> str:
        """The HTML of a page."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    def token(self, path: str = "/") -> str:
        """The secret that forms of this session send back."""
        found = _TOKEN.search(self.text(path))
        assert found is not None
        return unescape(found[1])

    def submit(self, path: str, **members: str) -> httpx.Response:
        """Send a form with the token of the session."""
        return self.submit_raw(path, token=self.token(), **members)

    def submit_raw(self, path: str, **members: str) -> httpx.Response:
        """Send a form as it is."""
        return self.post(path, content=str(httpx.QueryParams(members)).encode())


def add_alerts(stores: Any, *alerts: dict[str, Any]) -> None:
    """Put alerts into the store, as the sink does."""
    rows = []
    for number, changes in enumerate(alerts):
        alert = {
            "id": f"{number:032x}",
            "stream": "orders",
            "pattern": "p",
            "version": 1,
            "key": f"k{number}",
            "start": "2026-01-01T00:00:00Z",
            "end": "2026-01-01T00:00:01Z",
            "detected_at": "2026-01-01T00:00:01Z",
            "bindings": {"a": ["e1"], "b": ["e2"]},
            "why": "e1 is A a; e2 is B b",
            "severity": "medium",
            **changes,
        }
        rows.append(sink_row(kind="alert", stream=alert["stream"], id=alert["id"], body=orjson.dumps(alert)))
    for start in range(0, len(rows), 500):
        stores.alerts.append(rows[start : start + 500], [], start)


def incident(**changes: Any) -> bytes:
    """A change of an incident, as the sink notes it."""
    body = {
        "type": "incident.opened",
        "id": "c1",
        "incident": "i1",
        "stream": "orders",
        "pattern": "p",
        "version": 1,
        "severity": "high",
        "group": {"customer": "ann"},
        "state": "open",
        "revision": 1,
        "opened_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "closed_at": None,
        "closed_by": None,
        "acknowledged": None,
        "alerts": 3,
        "suppressed_alerts": 2,
        "first_alert": "a",
        "last_alert": "b",
        "key": "order-1",
        "why": "e1 is A a",
        **changes,
    }
    return orjson.dumps(body)


def add_attempt(stores: Any, receiver: str, **changes: Any) -> None:
    """Note an attempt to deliver, as the deliverer does."""
    attempt = {
        "delivery": f"{receiver}:x",
        "kind": "alert",
        "item": "x",
        "attempt": 1,
        "verdict": "delivered",
        "at_us": 0,
        "status": 204,
        "duration_ms": 3,
        "error": None,
        "next_us": None,
        **changes,
    }
    stores.client.xadd(stores.attempts(receiver).key, {"record": encode(**attempt), "rows": 1})
