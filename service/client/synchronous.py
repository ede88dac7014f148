"""The synchronous client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from types import TracebackType
from typing import Any, Self

import httpx
from httpx_sse import EventSource

from service.client.calls import Call, Connection, Following, LiveEvent, Paging, Retries, Tagged, decoded
from service.client.errors import ResourceMissing
from service.client.resources import Resources


class Client(Connection, Resources):
    """A synchronous client of a running service.

    The API's resources are attributes, and their operations are methods: ``client.patterns.get("late_payment")``.

    If a call gets no answer, or the status 503 or 507, it is repeated with growing pauses for up to ``patience_s``
    seconds. If it gets the status 429, it is repeated after the pause in ``Retry-After``, for up to
    ``overload_patience_s`` seconds. A repeated creation creates nothing twice.

    ``url`` may end with ``/v1``. Several threads can share a client. It is closed by ``close`` or at the end of a
    ``with`` block.
    """

    _transport = httpx.Client
    _http: httpx.Client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request, and return the content of the answer: decoded JSON, a text, bytes, or None for no content.

        ``path`` may omit the prefix ``/v1``. A body of bytes or text is sent unchanged, any other value as JSON.

        Raises:
            ApiError: The service rejects the call. The subclass depends on the status of the answer.
            ServiceUnreachable: The service did not answer within the patience.
        """
        return self.send(Call(method=method, path=path, query=query or {}, body=body, headers=headers or {}))

    def send(self, call: Call) -> Any:
        """Send a call, and return the content of the answer, as ``request`` does."""
        return decoded(self._answer(call))

    def content(self, path: str) -> bytes:
        """GET a path, and return the body of the answer unchanged."""
        answer = self._answer(Call(method="GET", path=path))
        return answer.content

    def find(self, path: str, **query: Any) -> Tagged[Any] | None:
        """GET a path, and return the content with its ``ETag``, or None if the resource does not exist."""
        try:
            answer = self._answer(Call(method="GET", path=path, query=query))
        except ResourceMissing:
            return None
        return Tagged(decoded(answer), answer.headers.get("ETag", ""))

    def pages(
        self,
        path: str,
        *,
        most: int | None = None,
        on_gap: Callable[[str], None] | None = None,
        on_more: Callable[[str], None] | None = None,
        **query: Any,
    ) -> Iterator[Any]:
        """Iterate over at most ``most`` items of a paged list, starting after the cursor ``after`` in ``query``.

        If items after the cursor were trimmed, ``on_gap`` is called with the time of the oldest retained item. If more
        than ``most`` items exist, ``on_more`` is called with the cursor after the last item.
        """
        paging = Paging(path, query, most, on_gap, on_more)
        while (call := paging.call()) is not None:
            yield from paging.items(self.send(call))

    def live(
        self, path: str, *, after: str | None = None, on_gap: Callable[[str], None] | None = None, **query: Any
    ) -> Iterator[LiveEvent[Any]]:
        """Iterate over the server-sent events of a path, without end.

        The iteration starts after the cursor ``after`` or, if that is None, with the next new event. If the connection
        is lost, it is opened again and resumes after the last event. If events after the cursor were trimmed,
        ``on_gap`` is called with the time of the oldest retained event. By default, a warning is logged.

        Raises:
            ServiceUnreachable: The service did not answer within the patience.
        """
        following = Following(path, query, after, on_gap)
        while True:
            answer = self._answer(following.call(), stream=True)
            with closing(answer), suppress(httpx.TransportError):
                following.check(answer)
                for event in EventSource(answer).iter_sse():
                    if (live_event := following.take(event)) is not None:
                        yield live_event
            time.sleep(following.pause_s)

    def _answer(self, call: Call, *, stream: bool = False) -> httpx.Response:
        """Send a call, with retries, and return the successful answer. If ``stream``, its body is not read."""
        retries, options = Retries(self._patience, self.url), call.with_key().options(self._headers)
        while True:
            try:
                answer = self._http.send(self._http.build_request(**options), stream=stream)
                if not answer.is_success:
                    answer.read()
            except httpx.TransportError as error:
                pause_s = retries.after_failure(error)
            else:
                if (pause := retries.after_answer(answer)) is None:
                    return answer
                pause_s = pause
            time.sleep(pause_s)
