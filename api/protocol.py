"""HTTP/1.1 protocol that refuses malformed requests and disconnects clients that do not complete a request head."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.errors import problem
from service import RequestRefused

_LONGEST_PART = 65_536
_FRAMING = (b"content-length", b"transfer-encoding")


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits: closes a connection if the head of a request takes too long or is too long.

    The timeout of a head starts at its first byte. If no byte arrives, it starts when the connection opens. A previous
    request that is still being answered is not interrupted.

    The parser limits neither the length of a head nor chunk extensions and trailers of a body (RFC 9112, section 7.1),
    so this class limits them. It drops trailer fields, because the parser would add them to the fields of the head. A
    request to upgrade to another protocol is ignored (RFC 9110, section 7.8), and the body is read as usual.
    """

    head_timeout_s: ClassVar[float] = 30.0
    _head_timer: asyncio.TimerHandle | None = None
    _unfinished_bytes = 0
    _is_repeated = False  # True while a new parser reads the same head again

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.parser = self._new_parser()
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._unfinished_bytes += len(data)
        try:
            self._parse(data)
        except HttpParserError as error:
            self.send_400_response(f"the request is not HTTP/1.1: {error.__context__ or error}")
            return
        if self._unfinished_bytes > _LONGEST_PART:
            self.send_400_response(f"a head of more than {_LONGEST_PART} bytes")
        elif self.cycle is None or self.cycle.response_complete or not self._has_head:
            self._watch_head()  # an incomplete head, blank lines, or the unread rest of a body

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request with a problem document, and close the connection."""
        if self.transport.is_closing():
            return
        self.logger.info("refused what a client sent: %s", msg)
        answer = problem(RequestRefused(msg))
        fields = [*self.server_state.default_headers, *answer.raw_headers, (b"connection", b"close")]
        head = b"".join(b"%b: %b\r\n" % pair for pair in fields)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n%b\r\n%b" % (head, bytes(answer.body)))
        self.transport.close()

    def on_message_begin(self) -> None:
        if self._is_repeated:
            self._is_repeated = False
            return
        super().on_message_begin()
        self._stop_watching()

    def on_url(self, url: bytes) -> None:
        if not self._has_head:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._has_head:
            return
        self._stop_watching()
        self._unfinished_bytes = 0
        self._require_framing()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unfinished_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unfinished_bytes = 0
        if not self.parser.should_upgrade():
            super().on_message_complete()

    @property
    def _has_head(self) -> bool:
        return "method" in self.scope

    def _new_parser(self) -> HttpRequestParser:
        parser = HttpRequestParser(self)
        parser.set_dangerous_leniencies(
            lenient_data_after_close=True,  # uvicorn's default
            lenient_chunked_length=True,  # the application refuses requests that declare two lengths
        )
        return parser

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
                return
            except HttpParserUpgrade as offer:
                data = data[offer.args[0] :]
            framing = [b"%b: %b\r\n" % pair for pair in self.headers if pair[0] in _FRAMING]
            self.parser, self._is_repeated = self._new_parser(), True
            self.parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % b"".join(framing))

    def _require_framing(self) -> None:
        """Refuse a request whose host or body length is ambiguous (RFC 9112, sections 3.2 and 6.3)."""
        names = [name for name, _ in self.headers]
        if self.parser.get_http_version() == "1.1" and names.count(b"host") != 1:
            raise ValueError("it must have one Host")
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        if codings and codings[-1].rpartition(b",")[2].strip().lower() != b"chunked":
            raise ValueError("its last Transfer-Encoding must be chunked")

    def _watch_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _stop_watching(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self.cycle is not None and not self.cycle.response_complete:  # the previous request is still being answered
            self._watch_head()
        elif not self.transport.is_closing():
            self.logger.info("a client took more than %s s to send the head of a request", self.head_timeout_s)
            self.transport.close()


def protocol_with(head_timeout_s: float) -> type[PatientProtocol]:
    """Return the protocol class with a given timeout, for uvicorn's option ``http``."""
    return type("Protocol", (PatientProtocol,), {"head_timeout_s": head_timeout_s})
