"""Calls of the API by a console: the public client, and answers that many pages share for a moment."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote

from forestall import AsyncClient

_MOST_KEPT = 512
_METRICS_AGE_S = 10.0

Value: TypeAlias = str | int | None
_Call: TypeAlias = tuple[str, tuple[tuple[str, Value], ...]]


def at(*parts: str) -> str:
    """A path of the API: its parts, quoted."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


class Api:
    """Calls one service with one API key; None: without a key. A page says at once that the service does not answer."""

    def __init__(self, url: str, key: str | None) -> None:
        self._client = AsyncClient(url, key, patience_s=0.0, overload_patience_s=0.0)
        self.users = 0  # sessions that call with this key
        self.shared: dict[Hashable, Any] = {}  # what their pages have together
        self._kept: OrderedDict[_Call, tuple[float, asyncio.Future[Any]]] = OrderedDict()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def get(self, path: str, **parameters: Value) -> Any:
        """The JSON answer to a GET; parameters without a value are left out."""
        return await self._client.request("GET", path, query=_given(parameters))

    async def recent(self, path: str, *, age_s: float = 1.0, **parameters: Value) -> Any:
        """The JSON answer to a GET, or that to an equal call of the last moments: for what many pages refresh."""
        call = (path, tuple(sorted(parameters.items())))
        return await self._recently(call, age_s, lambda: self.get(path, **parameters))

    async def metrics(self) -> str:
        """The metrics in the text form of Prometheus, at most some seconds old."""
        answer: str = await self._recently(("/metrics", ()), _METRICS_AGE_S, lambda: self.get("/metrics"))
        return answer

    async def _recently(self, call: _Call, age_s: float, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        asked_at, answer = self._kept.get(call, (0.0, None))
        if answer is None or time.monotonic() - asked_at > age_s or _has_failed(answer):
            answer = asyncio.ensure_future(ask())
            answer.add_done_callback(_has_failed)  # each caller gets the error
            self._kept[call] = (time.monotonic(), answer)
            self._kept.move_to_end(call)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return await asyncio.shield(answer)

    async def picture(self, path: str, **parameters: Value) -> bytes:
        """The SVG that answers a GET."""
        drawing: str = await self.get(path, **parameters)
        return drawing.encode()

    async def ask(self, path: str, question: Any) -> Any:
        """The JSON answer to a question that is sent as a POST, and changes nothing."""
        return await self._client.request("POST", path, body=question)

    async def send(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, **parameters: Value
    ) -> Any:
        """The JSON answer to a change; None if it has no body."""
        self._kept.clear()
        return await self._client.request(method, path, query=_given(parameters), body=body, headers=headers)


def _has_failed(answer: asyncio.Future[Any]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)


def _given(parameters: Mapping[str, Value]) -> dict[str, str | int]:
    return {name: value for name, value in parameters.items() if value is not None and value != ""}
