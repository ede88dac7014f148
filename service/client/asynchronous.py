"""The asynchronous client, which has the methods of ``Client`` as coroutines and asynchronous iterators."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Any, Self

import httpx
from httpx_sse import EventSource

from service.client.calls import Call, Connection, Following, LiveEvent, Paging, Retries, Tagged, decoded
from service.client.errors import ResourceMissing
from service.client.resources import AsyncResources


class AsyncClient(Connection, AsyncResources):
    """The asynchronous counterpart of ``Client``.

    It is closed by ``aclose`` or at the end of an ``async with`` block.
    """

    _transport = httpx.AsyncClient
    _http: httpx.AsyncClient

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request; see ``Client.request``."""
        return await self.send(Call(method=method, path=path, query=query or {}, body=body, headers=headers or {}))

    async def send(self, call: Call) -> Any:
        """Send a call; see ``Client.send``."""
        return decoded(await self._answer(call))

    async def content(self, path: str) -> bytes:
        """GET a path and return the body of the answer unchanged; see ``Client.content``."""
        answer = await self._answer(Call(method="GET", path=path))
        return answer.content

    async def find(self, path: str, **query: Any) -> Tagged[Any] | None:
        """GET a resource that may not exist; see ``Client.find``."""
        try:
            answer = await self._answer(Call(method="GET", path=path, query=query))
        except ResourceMissing:
            return None
        return Tagged(decoded(answer), answer.headers.get("ETag", ""))

    async def pages(
        self,
        path: str,
        *,
        most: int | None = None,
        on_gap: Callable[[str], None] | None = None,
        on_more: Callable[[str], None] | None = None,
        **query: Any,
    ) -> AsyncIterator[Any]:
        """Iterate over the items of a paged list; see ``Client.pages``."""
        paging = Paging(path, query, most, on_gap, on_more)
        while (call := paging.call()) is not None:
            for item in paging.items(await self.send(call)):
                yield item

    async def live(
        self, path: str, *, after: str | None = None, on_gap: Callable[[str], None] | None = None, **query: Any
    ) -> AsyncIterator[LiveEvent[Any]]:
        """Iterate over server-sent events until the task is cancelled; see ``Client.live``."""
        following = Following(path, query, after, on_gap)
        while True:
            answer = await self._answer(following.call(), stream=True)
            with suppress(httpx.TransportError):
                async with aclosing(answer), aclosing(EventSource(answer).aiter_sse()) as events:
                    following.check(answer)
                    async for event in events:
                        if (live_event := following.take(event)) is not None:
                            yield live_event
            await asyncio.sleep(following.pause_s)

    async def _answer(self, call: Call, *, stream: bool = False) -> httpx.Response:
        retries, options = Retries(self._patience, self.url), call.with_key().options(self._headers)
        while True:
            try:
                answer = await self._http.send(self._http.build_request(**options), stream=stream)
                if not answer.is_success:
                    await answer.aread()
            except httpx.TransportError as error:
                pause_s = retries.after_failure(error)
            else:
                if (pause := retries.after_answer(answer)) is None:
                    return answer
                pause_s = pause
            await asyncio.sleep(pause_s)
