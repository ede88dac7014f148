"""Calls of the API by a console: the only module that knows how the API is reached."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias
from urllib.parse import quote

import httpx
import orjson
from httpx_sse import EventSource

from console.errors import ApiGone, ApiRefused

_TIMEOUT_S = 30.0
_LONGEST_SILENCE_S = 40.0  # the API sends a comment every 15 seconds
_MOST_KEPT = 512
_METRICS_AGE_S = 5.0

Value: TypeAlias = str | int | bool | None
_Call: TypeAlias = tuple[str, tuple[tuple[str, Value], ...]]


def at(*parts: str) -> str:
    """A path of the API: its parts, quoted."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


class Api:
    """Calls one service with one API key; None: without a key."""

    def __init__(self, http: httpx.AsyncClient, key: str | None) -> None:
        self._http = http
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._kept: OrderedDict[_Call, tuple[float, asyncio.Future[Any]]] = OrderedDict()

    async def get(self, path: str, **parameters: Value) -> Any:
        """The JSON answer to a GET; parameters without a value are left out."""
        return (await self._answer("GET", path, parameters)).json()

    async def recent(self, path: str, *, age_s: float = 1.0, **parameters: Value) -> Any:
        """The JSON answer to a GET, or that to an equal call of the last moments: for what many pages refresh."""
        call = (path, tuple(sorted(parameters.items())))
        return await self._recently(call, age_s, lambda: self.get(path, **parameters))

    async def metrics(self) -> str:
        """The metrics in the text form of Prometheus, at most some seconds old."""
        path = f"{str(self._http.base_url).rstrip('/').removesuffix('/v1')}/metrics"
        body: bytes = await self._recently((path, ()), _METRICS_AGE_S, lambda: self.content(path))
        return body.decode()

    async def _recently(self, call: _Call, age_s: float, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        asked_at, answer = self._kept.get(call, (0.0, None))
        if answer is None or time.monotonic() - asked_at > age_s:
            answer = asyncio.ensure_future(ask())
            answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # each caller gets the error
            self._kept[call] = (time.monotonic(), answer)
            self._kept.move_to_end(call)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return await asyncio.shield(answer)

    async def content(self, path: str, **parameters: Value) -> bytes:
        """The body of the answer to a GET."""
        return (await self._answer("GET", path, parameters)).content

    async def ask(self, path: str, question: Any) -> Any:
        """The JSON answer to a question that is sent as a POST, and changes nothing."""
        return (await self._answer("POST", path, {}, question)).json()

    async def send(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, **parameters: Value
    ) -> Any:
        """The JSON answer to a change; None if it has no body."""
        self._kept.clear()
        answer = await self._answer(method, path, parameters, body, headers)
        return answer.json() if answer.content else None

    async def follow(self, path: str, after: str | None, **parameters: Value) -> AsyncIterator[tuple[str, Any]]:
        """The cursor and the JSON of each server-sent event, until the connection ends; the first has no JSON."""
        headers = {**self._headers, "Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        timeout = httpx.Timeout(_TIMEOUT_S, read=_LONGEST_SILENCE_S)
        request = self._http.build_request("GET", path, params=_given(parameters), headers=headers, timeout=timeout)
        answer = await self._sent(request, stream=True)
        try:
            async with aclosing(EventSource(answer).aiter_sse()) as events:
                async for event in events:
                    yield event.id, orjson.loads(event.data) if event.data else None
        except httpx.TransportError as error:
            raise _gone(self._http, error) from error
        finally:
            await answer.aclose()

    async def _answer(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, Value],
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        sent = {**self._headers, **(headers or {})}
        request = self._http.build_request(
            method, path, params=_given(parameters), headers=sent, json=body, timeout=_TIMEOUT_S
        )
        return await self._sent(request)

    async def _sent(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        try:
            answer = await self._http.send(request, stream=stream)
        except httpx.TransportError as error:
            raise _gone(self._http, error) from error
        if answer.is_success:
            return answer
        await answer.aread()
        raise ApiRefused(answer.status_code, _problem(answer))


def _given(parameters: Mapping[str, Value]) -> dict[str, str | int | bool]:
    return {name: value for name, value in parameters.items() if value is not None and value != ""}


def _gone(http: httpx.AsyncClient, error: Exception) -> ApiGone:
    where = str(http.base_url).removesuffix("/").removesuffix("/v1")
    return ApiGone(f"the API at {where} does not answer ({str(error) or type(error).__name__})")


def _problem(answer: httpx.Response) -> dict[str, Any]:
    try:
        problem = answer.json()
    except ValueError:
        problem = None
    return problem if isinstance(problem, dict) else {"detail": answer.text[:500]}
