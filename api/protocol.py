"""HTTP on the wire: a client that starts a request and does not finish its head is disconnected."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LONGEST_PART = 65_536


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which closes a connection if the head of a request takes too long, or is too long.

    The timeout of a head begins with its first byte, or with the connection; it does not end the request before. The
    parser itself limits neither a head nor what surrounds the parts of a body (RFC 9112, section 7.1).
    """

    head_timeout_s: ClassVar[float] = 30.0
    _head_timer: asyncio.TimerHandle | None = None
    _unfinished_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.parser.set_dangerous_leniencies(lenient_chunked_length=True)  # the application refuses two lengths
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unfinished_bytes += len(data)
        super().data_received(data)
        if self._unfinished_bytes > _LONGEST_PART and not self.transport.is_closing():
            self.send_400_response(f"a head of more than {_LONGEST_PART} bytes")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._watch_head()

    def on_headers_complete(self) -> None:
        self._stop_watching()
        self._unfinished_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unfinished_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unfinished_bytes = 0
        super().on_message_complete()

    def _watch_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _stop_watching(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self.cycle is not None and not self.cycle.response_complete:  # of the request before
            self._watch_head()
        elif not self.transport.is_closing():
            self.logger.info("a client took more than %s s to send the head of a request", self.head_timeout_s)
            self.transport.close()


def protocol_with(head_timeout_s: float) -> type[PatientProtocol]:
    """The protocol with a given timeout, for uvicorn's ``http``."""
    return type("Protocol", (PatientProtocol,), {"head_timeout_s": head_timeout_s})
