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
    """Calls a running service, and repeats calls that get no answer or meet an overload.

    The resources of the API are attributes, and their operations are methods: ``client.patterns.get("late_payment")``.
    After no answer, 503 or 507, a call is repeated with growing pauses for ``patience_s``. After 429, a call is
    repeated when ``Retry-After`` permits, for ``overload_patience_s``. A repeated creation creates nothing twice.
    ``url`` may end with ``/v1``. A client may be used by several threads, and is closed by ``close`` or at the end of a
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
        """Send a request; returns the content of the answer: JSON, a text, bytes, or None for an empty body.

        ``path`` is below ``/v1``. Bytes or text are sent unchanged as the body, any other value as JSON.

        Raises:
            ApiError: The service refuses the call; the subclass gives the kind of reason.
            ServiceUnreachable: The service did not answer within the patience.
        """
        return self.send(Call(method=method, path=path, query=query or {}, body=body, headers=headers or {}))

    def send(self, call: Call) -> Any:
        """Send a call; returns the content of the answer, as ``request`` does."""
        return decoded(self._answer(call))

    def content(self, path: str) -> bytes:
        """GET a path; returns the body of the answer unchanged."""
        answer = self._answer(Call(method="GET", path=path))
        return answer.content

    def find(self, path: str, **query: Any) -> Tagged[Any] | None:
        """GET a path; returns the content of the answer with its ``ETag``, or None if the resource does not exist."""
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
        """Iterate over the items of a paged list, at most ``most`` of them, beginning after the cursor ``after``.

        If items before a page are no longer kept, ``on_gap`` is called with the time of the oldest kept item. If more
        items follow, ``on_more`` is called with the cursor after the last item.
        """
        paging = Paging(path, query, most, on_gap, on_more)
        while (call := paging.call()) is not None:
            yield from paging.items(self.send(call))

    def live(
        self, path: str, *, after: str | None = None, on_gap: Callable[[str], None] | None = None, **query: Any
    ) -> Iterator[LiveEvent[Any]]:
        """Iterate over the server-sent events of a path, without end.

        The first event is the one after the cursor ``after``; None: new events only. A lost connection is opened again
        and resumes after the last event. If events after the cursor are no longer kept, ``on_gap`` is called with the
        time of the oldest kept event (default: a warning in the log).

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
        """Send a call, again if necessary; returns the successful answer, whose body is not read if ``stream``."""
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
