"""The logic of requests, retries, pages and server-sent events, which performs no I/O and is shared by both clients."""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, NamedTuple, Self, TypeVar
from urllib.parse import quote

import httpx
import orjson
from httpx_sse import ServerSentEvent

from service.client.errors import (
    AccessDenied,
    ApiError,
    InvalidRequest,
    ResourceChanged,
    ResourceConflict,
    ResourceMissing,
    ServiceFault,
    ServiceOverloaded,
    ServiceUnavailable,
    ServiceUnreachable,
    UnexpectedAnswer,
)

T = TypeVar("T")

LARGEST_PAGE = 1_000

_LOG = logging.getLogger(__name__)
_ROOTED = ("/", "/v1", "/metrics", "/openapi.json")
_CREATING = ("POST", "PUT")
_IN_USE = "idempotency-key-in-use"
_UNAVAILABLE = (503, 507)
_LONGEST_PAUSE_S = 60
_LONGEST_BACKOFF_S = 2.0
_FIRST_BACKOFF_S = 0.1
_RECONNECT_S = 0.5
_KEPT_CONNECTIONS = 50  # in addition to one connection for each live iterator
_GAP = "gap"
_WEB_PAGE = "text/html"
_HOPELESS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
_ERRORS: Mapping[int, type[ApiError]] = {
    401: AccessDenied,
    403: AccessDenied,
    404: ResourceMissing,
    409: ResourceConflict,
    412: ResourceChanged,
    429: ServiceOverloaded,
    503: ServiceUnavailable,
    504: ServiceUnavailable,
    507: ServiceUnavailable,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request to the API that a client can send, repeatedly if necessary.

    Attributes:
        path: Path with or without the prefix ``/v1``.
        query: Parameters of the query. None is left out, each item of a list becomes a parameter, and a ``datetime``
            must have a time zone.
        body: Body of the request. Bytes or text are sent unchanged, with the ``Content-Type`` in ``headers``. Any other
            value is sent as JSON.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def with_key(self) -> Call:
        """Return the call with an ``Idempotency-Key``. If it has one, or creates nothing, return it unchanged."""
        if self.method not in _CREATING or "Idempotency-Key" in self.headers:
            return self
        headers = {**self.headers, "Idempotency-Key": uuid.uuid4().hex}
        return Call(method=self.method, path=self.path, query=self.query, body=self.body, headers=headers)

    def options(self, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the call as arguments for httpx. ``headers`` are the headers that the client sends with every call."""
        is_rooted = self.path.startswith("/v1/") or self.path in _ROOTED
        path = self.path if is_rooted else f"/v1{self.path}"
        options: dict[str, Any] = {"method": self.method, "url": path, "headers": {**headers, **self.headers}}
        parameters = {name: _plain(value) for name, value in self.query.items() if value is not None}
        if parameters:  # with empty params, httpx would drop a query that is part of the path
            options["params"] = parameters
        if isinstance(self.body, bytes | str):
            options["content"] = self.body
        elif self.body is not None:
            options["content"] = orjson.dumps(self.body)
            options["headers"].setdefault("Content-Type", "application/json")
        return options


class Tagged(NamedTuple, Generic[T]):
    """The content of a resource and its ``ETag``, which identifies this content.

    A client can send the tag together with a change (``condition``). Then the service rejects the change if the
    resource has other content by then.
    """

    value: T
    etag: str


@dataclass(frozen=True, slots=True)
class LiveEvent(Generic[T]):
    """A server-sent event.

    Attributes:
        id: Cursor after the event.
        name: Kind of the event.
        data: Decoded JSON of the event.
    """

    id: str
    name: str
    data: T


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The time for which a client repeats a call.

    Attributes:
        unanswered_s: Seconds for which a call is repeated while the service, or a part of the service, does not answer.
        overload_s: Seconds for which a call is repeated while the service is overloaded, each time after the pause in
            ``Retry-After``.
    """

    unanswered_s: float
    overload_s: float


class Retries:
    """Decides after each attempt of a call whether to repeat the call, and after which pause."""

    def __init__(self, patience: Patience, url: str) -> None:
        self._patience, self._url = patience, url
        self._began_s = time.monotonic()
        self._backoff_s = _FIRST_BACKOFF_S

    def after_failure(self, error: httpx.TransportError) -> float:
        """Return the pause in seconds after an attempt without an answer.

        Raises:
            ServiceUnreachable: The patience is over, or no attempt can succeed.
        """
        pause_s = self._next_backoff_s()
        if isinstance(error, _HOPELESS) or self._is_over(pause_s, self._patience.unanswered_s):
            message = f"{self._url} does not answer: {str(error) or type(error).__name__}"
            raise ServiceUnreachable(message, is_listening=not isinstance(error, httpx.ConnectError)) from error
        return pause_s

    def after_answer(self, answer: httpx.Response) -> float | None:
        """Return the pause in seconds after an answer, or None if the answer is successful.

        The body of an unsuccessful answer must have been read.

        Raises:
            ApiError: The patience is over, or the service would refuse every attempt.
            UnexpectedAnswer: The answer redirects to another address.
        """
        if answer.is_success:
            return None
        if answer.is_redirect:
            place = answer.headers.get("Location", "elsewhere")
            raise UnexpectedAnswer(f"{self._url} is not the address of the service: it redirects to {place}")
        error = refusal(answer, self._url)
        if answer.status_code == 429:
            pause_s, patience_s = float(error.retry_after_s or 1), self._patience.overload_s
        elif answer.status_code in _UNAVAILABLE or error.code == _IN_USE:
            pause_s, patience_s = (
                max(self._next_backoff_s(), float(error.retry_after_s or 0)),
                self._patience.unanswered_s,
            )
        else:
            raise error
        if self._is_over(pause_s, patience_s):
            raise error
        return pause_s

    def _next_backoff_s(self) -> float:
        backoff_s = self._backoff_s
        self._backoff_s = min(_LONGEST_BACKOFF_S, backoff_s * 2)
        return backoff_s * random.uniform(0.5, 1.0)

    def _is_over(self, pause_s: float, patience_s: float) -> bool:
        return time.monotonic() - self._began_s + pause_s > patience_s


class Paging:
    """The state of an iteration over the pages of a list. The iteration ends after ``most`` items."""

    def __init__(
        self,
        path: str,
        query: Mapping[str, Any],
        most: int | None = None,
        on_gap: Callable[[str], None] | None = None,
        on_more: Callable[[str], None] | None = None,
    ) -> None:
        self._path, self._query, self._left = path, dict(query), most
        self._on_gap, self._on_more = on_gap, on_more

    def call(self) -> Call | None:
        """Return the request for the next page, or None if no further page is needed."""
        if self._left == 0:
            return None
        limit = self._query.get("limit") or LARGEST_PAGE
        return Call(method="GET", path=self._path, query={**self._query, "limit": min(self._left or limit, limit)})

    def items(self, page: Mapping[str, Any]) -> list[Any]:
        """Return the items of a page, up to the remaining number of items, and advance the cursor to the next page."""
        if (trimmed := page.get("trimmed_until")) and self._on_gap is not None:
            self._on_gap(trimmed)
        items: list[Any] = page["items"]
        following = page.get("next")
        if self._left is not None:
            items = items[: self._left]
            self._left -= len(items)
            if following and not self._left and self._on_more is not None:
                self._on_more(following)
        self._query["after"] = following
        if not following:
            self._left = 0
        return items


class Following:
    """The state of a subscription to server-sent events, which has the cursor from which the subscription resumes."""

    def __init__(
        self, path: str, query: Mapping[str, Any], after: str | None, on_gap: Callable[[str], None] | None
    ) -> None:
        self._path, self._query, self._after, self._on_gap = path, query, after, on_gap
        self.pause_s = _RECONNECT_S

    def call(self) -> Call:
        """Return the request that opens the next connection."""
        resuming = {} if self._after is None else {"Last-Event-ID": self._after}
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store", **resuming}
        return Call(method="GET", path=self._path, query=self._query, headers=headers)

    def check(self, answer: httpx.Response) -> None:
        """Check that an answer has server-sent events.

        Raises:
            UnexpectedAnswer: The answer has another content type.
        """
        form = answer.headers.get("Content-Type", "")
        if not form.startswith("text/event-stream"):
            raise UnexpectedAnswer(f"GET {answer.url} answers with {form or 'nothing'} and not with server-sent events")

    def take(self, event: ServerSentEvent) -> LiveEvent[Any] | None:
        """Convert an event for the caller, and advance the cursor. Return None if it has no data or reports a gap."""
        self._after = event.id or self._after
        if event.retry is not None:
            self.pause_s = min(event.retry / 1_000, _LONGEST_PAUSE_S)
        if not event.data:
            return None
        data = orjson.loads(event.data)
        if event.event == _GAP:
            (self._on_gap or _warn_of_gap)(data["trimmed_until"])
            return None
        return LiveEvent(event.id, event.event, data)


def _warn_of_gap(trimmed_until: str) -> None:
    _LOG.warning("events before %s are no longer kept, and were skipped", trimmed_until)


def condition(etag: str | None) -> dict[str, str]:
    """Return the header that makes a change conditional: the resource must still have the tag ``etag``.

    If ``etag`` is None, the resource must not exist. If ``etag`` is empty, there is no condition and no header.
    """
    return {"If-None-Match": "*"} if etag is None else {"If-Match": etag} if etag else {}


def part(name: str) -> str:
    """Escape a name for use as a single segment of a URL's path. The names ``.`` and ``..`` are escaped too."""
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")


def decoded(answer: httpx.Response) -> Any:
    """Return the content of a successful answer: decoded JSON, a text, bytes, or None for an empty body.

    Raises:
        UnexpectedAnswer: The answer is not valid JSON, although its content type is JSON, or it is a web page.
    """
    form = _form_of(answer)
    if not answer.content:
        return None
    if form == _WEB_PAGE:
        raise UnexpectedAnswer(
            f"{answer.request.method} {answer.url} answers with a web page: another server runs there"
        )
    if form.endswith("json"):
        try:
            return orjson.loads(answer.content)
        except orjson.JSONDecodeError as error:
            raise UnexpectedAnswer(
                f"{answer.request.method} {answer.url} answers with invalid JSON: {error}"
            ) from error
    is_text = form.startswith("text/") or form.endswith(("xml", "yaml"))
    return answer.text if is_text else answer.content


def refusal(answer: httpx.Response, url: str) -> ApiError:
    """Return the error for an unsuccessful answer."""
    try:
        document = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        document = None
    problem = document if isinstance(document, dict) else {}
    is_foreign = _form_of(answer) == _WEB_PAGE
    text = f"the answer is a web page: another server, or a proxy, runs at {url}" if is_foreign else answer.text[:200]
    detail = problem.get("detail") or problem.get("title") or text or answer.reason_phrase
    status, request = answer.status_code, answer.request
    if status == 429:
        message = f"{url} is overloaded: {detail}"
    elif status in _UNAVAILABLE:
        message = f"{url} is not ready: {detail}"
    else:
        message = f"{request.method} {request.url.path} was refused ({status}): {detail}"
    kind = _ERRORS.get(status, ServiceFault if status >= 500 else InvalidRequest)
    return kind(
        message,
        status=status,
        problem=problem,
        request_id=answer.headers.get("X-Request-Id", ""),
        retry_after_s=_retry_after_s(answer),
    )


def _form_of(answer: httpx.Response) -> str:
    form, _, _ = str(answer.headers.get("Content-Type", "")).partition(";")
    return form.strip().lower()


def _retry_after_s(answer: httpx.Response) -> int | None:
    text = answer.headers.get("Retry-After", "")
    return min(_LONGEST_PAUSE_S, max(1, int(text))) if text.isascii() and text.isdigit() else None


def _plain(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ValueError(f"{value.isoformat()} has no time zone; give it one, such as datetime.timezone.utc")
    return value.isoformat()


class Connection:
    """The base of both clients, which has the address of a service, an API key and the patience.

    Attributes:
        url: Address of the service, without the suffix ``/v1``.
    """

    _transport: type[httpx.Client | httpx.AsyncClient]

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        patience_s: float = 30.0,
        overload_patience_s: float = 60.0,
        timeout_s: float = 30.0,
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self._patience = Patience(unanswered_s=patience_s, overload_s=overload_patience_s)
        self._headers = _authorization(key)
        is_plain = url.lower().startswith("http:")  # HTTP needs no certificates, whose reading takes 35 ms
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT_CONNECTIONS)
        self._http: Any = self._transport(base_url=self.url, timeout=timeout_s, verify=not is_plain, limits=limits)

    def with_key(self, key: str | None) -> Self:
        """Return a client that has another API key and shares the connections of this client."""
        client = copy(self)
        client._headers = _authorization(key)
        return client

    def with_patience(self, patience_s: float) -> Self:
        """Return a client that has another patience for unanswered calls and shares the connections of this client.

        With a patience of 0, a call is attempted once.
        """
        client = copy(self)
        client._patience = replace(self._patience, unanswered_s=patience_s)
        return client


def _authorization(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}
