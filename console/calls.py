"""The console's calls of the API by the public client. Pages share answers for a short time."""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Mapping
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

import orjson

from forestall import ApiError, AsyncClient

_MOST_KEPT = 512
_OPERATION = re.compile(r"; GET /v1/[\w/-]+ lists them| \((?:GET|POST|PUT|PATCH|DELETE) /v1/[^)]*\)")

Value: TypeAlias = str | int | None
T = TypeVar("T")


def at(*parts: str) -> str:
    """Build a path of the API from its parts. Each part is quoted."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


class Api:
    """Calls one service with one API key (None: no key). Nothing is retried, so that pages report an outage at once."""

    def __init__(self, url: str, key: str | None) -> None:
        self._client = AsyncClient(url, key, patience_s=0.0, overload_patience_s=0.0)
        self.users = 0  # number of sessions that use this key
        self.feeds: dict[Hashable, Any] = {}  # feeds that pages of these sessions share
        self._kept: OrderedDict[Hashable, tuple[float, asyncio.Future[Any]]] = OrderedDict()

    async def close(self) -> None:
        await self._client.aclose()

    async def get(self, path: str, *, age_s: float = 0.0, **parameters: Value) -> Any:
        """Send a GET request, and return the JSON answer. Parameters without a value are not sent.

        If an equal call is at most ``age_s`` seconds old, its answer is returned again.
        """
        query = _query_of(parameters)
        call = (path, tuple(sorted(query.items())))
        return await self.shared(call, age_s, lambda: self._client.request("GET", path, query=query))

    async def tagged(self, path: str) -> tuple[Any, str]:
        """Send a GET request, and return the JSON answer and its ETag, which may be empty.

        The answer never comes from an earlier call.
        """
        tagged = await self._client.find(path)
        return tagged or (await self._client.request("GET", path), "")  # the second call raises the error

    async def ask(self, path: str, question: Any, *, age_s: float = 0.0) -> Any:
        """Send a query with a JSON body by POST, and return the JSON answer. The query changes nothing.

        If an equal call is at most ``age_s`` seconds old, its answer is returned again.
        """
        call = (path, orjson.dumps(question))
        return await self.shared(call, age_s, lambda: self._client.request("POST", path, body=question))

    async def shared(self, name: Hashable, age_s: float, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of ``ask``, or a result under the same ``name`` that is at most ``age_s`` seconds old."""
        if not age_s:
            return await ask()
        asked_at, answer = self._kept.get(name, (0.0, None))
        if answer is None or time.monotonic() - asked_at > age_s or _has_failed(answer):
            answer = asyncio.ensure_future(ask())
            answer.add_done_callback(_has_failed)  # marks the error as retrieved; each caller gets it
            self._kept[name] = (time.monotonic(), answer)
            self._kept.move_to_end(name)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return await asyncio.shield(answer)

    async def send(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, **parameters: Value
    ) -> Any:
        """Send a request that changes something. Return the JSON answer, or None if the answer has no body."""
        try:
            return await self._client.request(method, path, query=_query_of(parameters), body=body, headers=headers)
        finally:
            self._kept.clear()


def reason_of(refusal: ApiError) -> str:
    """Return why the API has refused a call, without the operations of the API that would help its callers."""
    return _OPERATION.sub("", refusal.detail)


def _has_failed(answer: asyncio.Future[Any]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)


def _query_of(parameters: Mapping[str, Value]) -> dict[str, str | int]:
    return {name: value for name, value in parameters.items() if value is not None and value != ""}
