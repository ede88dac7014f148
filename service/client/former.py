"""A thin client of the HTTP API, for the command line and the demo."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from types import TracebackType
from typing import Any, Protocol, Self, cast
from urllib.parse import quote

import httpx
import orjson
from httpx_sse import EventSource
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential_jitter

from service.errors import CallRefused, ServiceOverloaded, ServiceUnreachable
from streams import Event, KeyForm, keyed_cloudevent
from streams.compiling import COMPILING

_LONGEST_PAUSE_S = 60
_LARGEST_PAGE = 1_000
_READY_POLL_S = 0.2
_RECONNECT_S = 0.5
_NOTHING_ACCEPTED = "nothing-accepted"
REPLAY_SOURCE = "forestall/replay"
_IN_USE = "idempotency-key-in-use"
_BATCH_FORM = "application/cloudevents-batch+json"


class ForestallClient:
    """Calls a running service; retries transport errors, 503 and 507 for a while, and 429 after its ``Retry-After``.

    An unanswered call is retried for ``patience_s``; while the service is overloaded, for ``overload_patience_s``, as
    it accepts the call as soon as it has caught up a little. ``url`` may end with ``/v1``.
    """

    def __init__(
        self, url: str, api_key: str | None = None, *, patience_s: float = 60.0, overload_patience_s: float = 1_800.0
    ) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.url = url.rstrip("/").removesuffix("/v1")
        is_plain = self.url.lower().startswith("http:")  # needs no certificates, whose reading takes 35 ms
        self._http = httpx.Client(base_url=f"{self.url}/v1", headers=headers, timeout=30.0, verify=not is_plain)
        self._overload_patience_s = overload_patience_s
        self._unanswered = Retrying(
            retry=retry_if_exception_type(ServiceUnreachable),
            stop=stop_after_delay(patience_s),
            wait=wait_exponential_jitter(multiplier=0.1, max=2.0),
            reraise=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, **parameters: str | int) -> Any:
        """The JSON answer to a GET."""
        return self._retrying(self._call, "GET", path, params=parameters)

    def post(self, path: str, body: Any, **parameters: str | int) -> Any:
        """The JSON answer to a POST of a JSON body; creates nothing twice, however often it is retried."""
        return self._retrying(self._call, "POST", path, params=parameters, json=body, headers=_once())

    def put(self, path: str, body: Any, **parameters: str | int) -> Any:
        """The JSON answer to a PUT of a JSON body."""
        return self._retrying(self._call, "PUT", path, params=parameters, json=body)

    def patch(self, path: str, body: Any) -> Any:
        """The JSON answer to a PATCH of a JSON body."""
        return self._retrying(self._call, "PATCH", path, json=body)

    def read(self, path: str) -> tuple[Any, str] | None:
        """The JSON answer to a GET with its ``ETag``, or None if the resource does not exist."""
        try:
            answer: httpx.Response = self._retrying(self._answered, self._http.build_request("GET", path))
        except CallRefused as error:
            if error.details["status"] == httpx.codes.NOT_FOUND:
                return None
            raise
        return answer.json(), answer.headers.get("ETag", "")

    def content(self, path: str) -> bytes:
        """The body of the answer to a GET."""
        answer: httpx.Response = self._retrying(self._answered, self._http.build_request("GET", path))
        return answer.content

    def change(self, method: str, path: str, tag: str | None, **options: Any) -> Any:
        """The JSON answer to a change that is made only if the resource is still as it was read.

        ``tag`` is the ``ETag`` that was read; None: the resource did not exist. If the resource has changed,
        ``CallRefused`` has the status 412. The options are parameters and body, in the form of httpx.
        """
        condition = {"If-None-Match": "*"} if tag is None else {"If-Match": tag} if tag else {}
        headers = {**condition, **_once(), **options.pop("headers", {})}
        return self._retrying(self._call, method, path, headers=headers, **options)

    def upload(self, path: str, content: bytes, media_type: str, **parameters: str | int) -> Any:
        """The JSON answer to a POST of a body of another type."""
        headers = {"Content-Type": media_type, **_once()}
        return self._retrying(self._call, "POST", path, params=parameters, content=content, headers=headers)

    def metrics(self) -> str:
        """The metrics in the text form of Prometheus."""
        answer: httpx.Response = self._retrying(self._answered, self._http.build_request("GET", f"{self.url}/metrics"))
        return answer.text

    def delete(self, path: str) -> None:
        """Delete the resource of a path."""
        self._retrying(self._call, "DELETE", path)

    def missing(self) -> str | None:
        """The missing parts of the service, in words; None if it is ready. Makes one attempt."""
        try:
            answer = self._http.get("/ready")
        except httpx.ConnectError:
            return "starting the API"
        except httpx.TransportError as error:
            return f"waiting for the API: {self.url} does not answer ({str(error) or type(error).__name__})"
        return None if answer.status_code == httpx.codes.OK else _detail(answer)

    def send_events(
        self,
        stream: str,
        events: Sequence[Event],
        idempotency_key: str,
        sources: Sequence[str] = (),
        key: KeyForm = "subject",
    ) -> dict[str, Any]:
        """Append events to a stream, once, however often the call is repeated; the answer lists the rejected ones.

        ``idempotency_key`` names these events. The source of an event identifies it together with its id; without
        sources, all have a common one. ``key`` is where the stream has the correlation key.
        """
        places = sources or [REPLAY_SOURCE] * len(events)
        try:
            answer = self._retrying(
                self._call,
                "POST",
                "/events",
                params={"stream": stream},
                json=[keyed_cloudevent(event, source, key) for event, source in zip(events, places, strict=True)],
                headers={"Content-Type": _BATCH_FORM, "Idempotency-Key": idempotency_key},
            )
        except CallRefused as error:
            answer = cast("dict[str, Any]", error.details["problem"])
            if answer.get("code") != _NOTHING_ACCEPTED:
                raise
        return cast("dict[str, Any]", answer)

    def pages(
        self,
        path: str,
        on_gap: Callable[[str], None] = lambda _: None,
        *,
        most: int | None = None,
        on_more: Callable[[str], None] = lambda _: None,
        **parameters: str | int,
    ) -> Iterator[dict[str, Any]]:
        """All items of a paged list, or at most a number; from a cursor on if ``after`` is given.

        If items before a page are no longer kept, ``on_gap`` is called with the time of the oldest kept item. If more
        items follow, ``on_more`` is called with their cursor after the last item.
        """
        cursor: dict[str, str | int] = {}
        left = most
        while True:
            page = self.get(path, **{**parameters, "limit": min(left or _LARGEST_PAGE, _LARGEST_PAGE), **cursor})
            if page.get("trimmed_until"):
                on_gap(page["trimmed_until"])
            yield from page["items"]
            if not page.get("next"):
                return
            cursor = {"after": page["next"]}
            if left is not None:
                left -= len(page["items"])
                if not left:
                    on_more(page["next"])
                    return

    def follow(
        self,
        path: str,
        after: str | None = None,
        on_gap: Callable[[str], None] = lambda _: None,
        **parameters: str | int,
    ) -> Iterator[dict[str, Any]]:
        """Yield the JSON of each server-sent event; endless.

        It begins after the event with the id ``after``; None: new events only. When the connection ends, a new
        connection continues after the last event; ``ServiceUnreachable`` if the service does not come back within the
        patience. If some events are no longer kept, ``on_gap`` is called with the time of the oldest kept event.
        """
        while True:
            headers = {"Accept": "text/event-stream", **({} if after is None else {"Last-Event-ID": after})}
            answer: httpx.Response = self._retrying(self._open, path, params=parameters, headers=headers)
            with closing(answer), suppress(httpx.TransportError):
                for event in EventSource(answer).iter_sse():
                    after = event.id or after
                    if event.event == "gap":
                        on_gap(orjson.loads(event.data)["trimmed_until"])
                    elif event.data:
                        yield orjson.loads(event.data)
            time.sleep(_RECONNECT_S)

    def _retrying(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """The answer to a call, retried within the patience."""
        deadline = time.monotonic() + self._overload_patience_s
        while True:
            try:
                return self._unanswered(call, *arguments, **options)
            except ServiceOverloaded as error:
                pause_s = float(cast("int", error.details["retry_after_s"]))
                if time.monotonic() + pause_s > deadline:
                    raise
                time.sleep(pause_s)

    def _call(self, method: str, path: str, **options: Any) -> Any:
        answer = self._answered(self._http.build_request(method, path, **options))
        is_text = answer.headers.get("Content-Type", "").startswith(("text/", "image/svg"))
        return answer.text if is_text else answer.json() if answer.content else None

    def _open(self, path: str, **options: Any) -> httpx.Response:
        """An answer whose body has not been read yet; the caller closes it."""
        return self._answered(self._http.build_request("GET", path, **options), stream=True)

    def _answered(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        try:
            answer = self._http.send(request, stream=stream)
            if answer.is_error:
                answer.read()
        except httpx.TransportError as error:
            raise ServiceUnreachable(f"{self.url} does not answer: {str(error) or type(error).__name__}") from error
        if answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
            raise ServiceOverloaded(
                f"{self.url} is overloaded: {_detail(answer)}", retry_after_s=_retry_after_s(answer)
            )
        if answer.status_code in (httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.INSUFFICIENT_STORAGE):
            raise ServiceUnreachable(f"{self.url} is not ready: {_detail(answer)}")
        if answer.status_code == httpx.codes.CONFLICT and _problem(answer).get("code") == _IN_USE:
            raise ServiceUnreachable(f"{self.url} is still processing the request: {_detail(answer)}")
        if answer.is_error:
            raise CallRefused(
                f"{request.method} {request.url.path} was refused ({answer.status_code}): {_detail(answer)}",
                status=answer.status_code,
                problem=_problem(answer),
            )
        return answer


def part(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


class Startable(Protocol):
    """A service whose start can be awaited."""

    def missing(self) -> str | None: ...


def await_ready(client: Startable, say: Callable[[str], None], patience_s: float) -> str | None:
    """Wait until the service is ready; returns what is still missing, None if nothing.

    ``say`` is called a few times a second with what is missing. Each compiled kernel restarts the patience.
    """
    before, deadline = "", time.monotonic() + patience_s
    while (reason := client.missing()) is not None and time.monotonic() < deadline:
        if COMPILING in reason and reason != before:
            before, deadline = reason, time.monotonic() + patience_s
        say(reason)
        time.sleep(_READY_POLL_S)
    return reason


def _once() -> dict[str, str]:
    """The header by which the service recognises a repeated call."""
    return {"Idempotency-Key": uuid.uuid4().hex}


def _retry_after_s(answer: httpx.Response) -> int:
    """Seconds of ``Retry-After``, within bounds; 1 where it is missing or a date."""
    text = answer.headers.get("Retry-After", "")
    return min(_LONGEST_PAUSE_S, max(1, int(text))) if text.isascii() and text.isdigit() else 1


def _problem(answer: httpx.Response) -> dict[str, Any]:
    try:
        problem = answer.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _detail(answer: httpx.Response) -> str:
    try:
        problem = answer.json()
    except ValueError:
        return answer.text[:200] or answer.reason_phrase
    return str(problem.get("detail") or problem.get("title") or problem)
