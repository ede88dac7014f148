"""HTTP on the wire: a client that starts a request and does not finish its head is disconnected."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """uvicorn's protocol, which closes a connection if the head of a request takes too long.

    The timeout of a head begins with its first byte, or with the connection.
    """

    head_timeout_s: ClassVar[float] = 30.0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_head()

    def _watch_head(self) -> None:
        """Run a timer while, and only while, a head is incomplete."""
        if not self._waits_for_head():
            self._stop_watching()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _waits_for_head(self) -> bool:
        """Whether a head is incomplete; between two requests on a kept connection there may be none."""
        cycle: Any = self.cycle
        return cycle is None or (cycle.response_complete and bool(self.conn.trailing_data[0]))

    def _stop_watching(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.logger.info("a client took more than %s s to send the head of a request", self.head_timeout_s)
            self.transport.close()


def protocol_with(head_timeout_s: float) -> type[PatientProtocol]:
    """The protocol with a given timeout, for uvicorn's ``http``."""
    return type("Protocol", (PatientProtocol,), {"head_timeout_s": head_timeout_s})
