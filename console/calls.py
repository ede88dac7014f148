"""Calls of the API by a console: the public client, and answers that many pages share for a moment."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Mapping
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

import orjson

from forestall import AsyncClient

_MOST_KEPT = 512

Value: TypeAlias = str | int | None
T = TypeVar("T")


def at(*parts: str) -> str:
    """A path of the API: its parts, quoted."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


class Api:
    """Calls one service with one API key; None: without a key. A page says at once that the service does not answer."""

    def __init__(self, url: str, key: str | None) -> None:
        self._client = AsyncClient(url, key, patience_s=0.0, overload_patience_s=0.0)
        self.users = 0  # sessions that call with this key
        self.feeds: dict[Hashable, Any] = {}  # that their pages follow together
        self._kept: OrderedDict[Hashable, tuple[float, asyncio.Future[Any]]] = OrderedDict()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def get(self, path: str, *, age_s: float = 0.0, **parameters: Value) -> Any:
        """The JSON answer to a GET, or to an equal call of the last ``age_s`` seconds; parameters may be empty."""
        query = _given(parameters)
        call = (path, tuple(sorted(query.items())))
        return await self.shared(call, age_s, lambda: self._client.request("GET", path, query=query))

    async def ask(self, path: str, question: Any, *, age_s: float = 0.0) -> Any:
        """The JSON answer to a question that is sent as a POST, and changes nothing."""
        call = (path, orjson.dumps(question))
        return await self.shared(call, age_s, lambda: self._client.request("POST", path, body=question))

    async def shared(self, name: Hashable, age_s: float, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The answer to ``ask``, or an answer under the same name of the last ``age_s`` seconds."""
        if not age_s:
            return await ask()
        asked_at, answer = self._kept.get(name, (0.0, None))
        if answer is None or time.monotonic() - asked_at > age_s or _has_failed(answer):
            answer = asyncio.ensure_future(ask())
            answer.add_done_callback(_has_failed)  # each caller gets the error
            self._kept[name] = (time.monotonic(), answer)
            self._kept.move_to_end(name)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return await asyncio.shield(answer)

    async def send(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, **parameters: Value
    ) -> Any:
        """The JSON answer to a change; None if it has no body."""
        try:
            return await self._client.request(method, path, query=_given(parameters), body=body, headers=headers)
        finally:
            self._kept.clear()


def _has_failed(answer: asyncio.Future[Any]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)


def _given(parameters: Mapping[str, Value]) -> dict[str, str | int]:
    return {name: value for name, value in parameters.items() if value is not None and value != ""}
