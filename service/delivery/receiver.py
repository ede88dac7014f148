"""A small webhook receiver for the demo, which accepts alerts on loopback and verifies their signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from service.client import WebhookNotVerified, verify_webhook

_MOST_BYTES = 1_000_000


@dataclass(slots=True)
class Received:
    """The requests that a receiver has accepted and refused.

    Attributes:
        alerts: The received alerts, by their header ``webhook-id``.
        deliveries: Number of requests with a valid signature.
        refused: Number of requests without a valid signature.
    """

    alerts: dict[str, dict[str, Any]] = field(default_factory=dict)
    deliveries: int = 0
    refused: int = 0
    secret: str = ""
    lock: Lock = field(default_factory=Lock)

    def take(self, body: bytes, headers: dict[str, str], on_alert: Callable[[dict[str, Any]], None]) -> bool:
        """Count a request, and return whether its signature is valid.

        If the signature is valid and the alert was not received before, call ``on_alert`` with the alert.
        """
        try:
            message = verify_webhook(body, headers, self.secret)
        except WebhookNotVerified:
            with self.lock:
                self.refused += 1
            return False
        with self.lock:
            self.deliveries += 1
            is_new = message.id not in self.alerts
            self.alerts[message.id] = message.data
        if is_new:
            on_alert(message.data)
        return True


@contextmanager
def receiver(on_alert: Callable[[dict[str, Any]], None] = lambda _: None) -> Iterator[tuple[str, Received]]:
    """Run a receiver on a free loopback port during the ``with`` block. Yield its URL and its requests."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = min(int(self.headers.get("content-length") or 0), _MOST_BYTES)
            headers = dict(self.headers.items())
            body = self.rfile.read(length)
            if len(body) < length:  # the sender died, and will repeat the request
                self.close_connection = True
                return
            is_valid = received.take(body, headers, on_alert)
            self.send_response(204 if is_valid else 401)
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            """Log nothing, because the demo prints the alerts."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, name="webhook-receiver", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/alerts", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
