"""A request for a page: its session, its calls of the API, and the templates that render the answer."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from console.calls import Api, Value, reason_of
from console.formats import FILTERS, between
from console.guarding import is_own_change
from console.sessions import Session
from forestall import ApiError

MENU: Final = (
    ("/", "Overview"),
    ("/alerts", "Alerts"),
    ("/incidents", "Incidents"),
    ("/transactions", "Transactions"),
    ("/process", "Process"),
    ("/patterns", "Patterns"),
    ("/streams", "Streams"),
    ("/webhooks", "Webhooks"),
    ("/ask", "Ask"),
    ("/dead-letters", "Dead letters"),
)
_PARTS: Final = {
    "/backtests/": "/patterns",
    "/editor": "/patterns",
    "/trials/": "/patterns",
    "/sinks/": "/webhooks",
}  # pages without their own menu entry
_THEMES: Final = ("light", "dark")
_LARGEST_FORM_BYTES: Final = 1_000_000
_PAGE_SIZE: Final = 50
_STREAMS_AGE_S: Final = 3.0
_AT_ONCE: Final = 3  # concurrent calls of a page; more would delay other clients of the API
_SHARED: Final = 0.75  # share of the time between two refreshes
_LONGEST_SHARED_S: Final = 10.0

View: TypeAlias = Callable[["Page"], Awaitable[Response]]


class FormRefused(Exception):
    """A form was not sent by a page of this session, or is too large."""


@dataclass(slots=True)
class Page:
    """A request for a page by a logged-in browser.

    It has the parameters, the session and the API client, and renders the answer.
    """

    request: Request
    session: Session
    _calls: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    @property
    def api(self) -> Api:
        return self.session.api

    async def get(self, path: str, *, age_s: float = 0.0, **parameters: Value) -> Any:
        """Return the JSON answer of the API to a GET request.

        The answer to an equal call is reused for ``age_s`` seconds.

        A refresh of a page also reuses the answers of other pages with the same key. This limits the load on the API.
        """
        async with self._calls:
            return await self.api.get(path, age_s=max(age_s, self.shared_s), **parameters)

    @property
    def shared_s(self) -> float:
        """The maximum age in seconds of an answer that a refresh reuses. It is 0 unless a script refreshes the page."""
        try:
            period_s = float(self.request.headers.get("x-refresh", 0))
        except ValueError:
            return 0.0
        return _SHARED * min(period_s, _LONGEST_SHARED_S) if period_s > 0 else 0.0

    async def picture(self, path: str, **parameters: Any) -> bytes:
        """Return a picture of the API, an SVG."""
        drawing: str = await self.get(path, **parameters)
        return drawing.encode()

    def query(self, name: str) -> str | None:
        """Return a parameter of the address, or None if missing or empty. ``stream`` defaults to ``only_stream``."""
        return self.parameter(name) or (self.only_stream if name == "stream" else None)

    def parameter(self, name: str) -> str | None:
        """Return a parameter of the address, or None if missing or empty. ``stream`` has no default.

        Lists of all streams use this method, because the API lists only what the key may access.
        """
        return self.request.query_params.get(name) or None

    @property
    def only_stream(self) -> str | None:
        """The first stream of a restricted key, or None for an unrestricted key."""
        return next(iter(self.session.streams or ()), None)

    def place(self, name: str) -> str:
        """Return a path parameter of the page's address."""
        return str(self.request.path_params[name])

    async def form(self) -> dict[str, str]:
        """Return the members of a sent form. Raise ``FormRefused`` unless it has this session's token."""
        members = await read_form(self.request)
        sent_token = members.pop("token", "") or self.request.headers.get("x-console-token", "")
        if not is_own_change(self.request, self.session.token, sent_token):
            raise FormRefused
        return members

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        path = self.request.url.path
        path = next((menu_path for prefix, menu_path in _PARTS.items() if path.startswith(prefix)), path)
        common = {
            "session": self.session,
            "menu": MENU,
            "here": max(
                (
                    menu_path
                    for menu_path, _ in MENU
                    if path == menu_path or path.startswith(menu_path.rstrip("/") + "/")
                ),
                default="",
            ),
            "notices": [] if self.is_refresh else self.session.take_notices(),
            "may_change": self.session.may("patterns"),
            "with_query": self._with_query,
        }
        answer = rendered(self.request, template, status, **common, **values)
        return self._unless_known(answer) if self.is_refresh and status == 200 else answer

    def _unless_known(self, answer: Response) -> Response:
        tag = f'"{hashlib.blake2b(answer.body, digest_size=12).hexdigest()}"'
        if self.request.headers.get("if-none-match") == tag:
            return Response(status_code=304)
        answer.headers["ETag"] = tag
        return answer

    @property
    def is_refresh(self) -> bool:
        """Whether a script requests the page, in order to refresh parts of it."""
        return "x-refresh" in self.request.headers

    def go(self, path: str, notice: str = "", **query: str | None) -> Response:
        """Redirect to another page, which shows ``notice``."""
        if notice:
            self.session.notify(notice)
        parameters = {name: value for name, value in query.items() if value}
        return RedirectResponse(path + (f"?{urlencode(parameters)}" if parameters else ""), status_code=303)

    async def change(self, call: Awaitable[Any], path: str, done: str) -> Response:
        """Await a change by the API, and redirect to a page, which shows ``done`` or why the change was refused."""
        try:
            await call
        except ApiError as refusal:
            self.session.notify(reason_of(refusal), "bad")
            return self.go(path)
        return self.go(path, done)

    async def streams(self) -> list[dict[str, Any]]:
        """Return the declared streams, by name."""
        streams: list[dict[str, Any]] = (await self.get("/streams", age_s=_STREAMS_AGE_S))["items"]
        return streams

    async def patterns(self) -> list[dict[str, Any]]:
        """Return the patterns that the key may access, by name."""
        patterns: list[dict[str, Any]] = (await self.get("/patterns", age_s=1.0))["items"]
        return patterns

    async def pattern_names(self) -> list[str]:
        """Return the names of the patterns that the key may access."""
        return [pattern["name"] for pattern in await self.patterns()]

    async def stream(self, *, is_derived: bool = False) -> tuple[str | None, list[str]]:
        """Return the stream that the user has chosen, or the first one, and the names of all streams.

        Derived streams are included only with ``is_derived``.
        """
        streams = await self.streams()
        names = [stream["name"] for stream in streams if is_derived or not stream["derived"]]
        return self.query("stream") or next(iter(names), None), names

    def _with_query(self, **changes: str | int | None) -> str:
        query = {**self.request.query_params, **changes}
        parameters = {name: value for name, value in query.items() if value not in (None, "")}
        return self.request.url.path + (f"?{urlencode(parameters)}" if parameters else "")


async def allowed(call: Awaitable[Any], otherwise: Any = None) -> Any:
    """Return the result of a call of the API, or ``otherwise`` if the key may not make it or nothing is found."""
    try:
        return await call
    except ApiError as refusal:
        if refusal.status in (403, 404):
            return otherwise
        raise


async def all_of(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    """Await calls concurrently and return their results. The first error cancels all other calls."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def read_form(request: Request) -> dict[str, str]:
    """Return the members of a form. If a member is repeated, its last value counts."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _LARGEST_FORM_BYTES:
            raise FormRefused
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=100))
    except ValueError as error:
        raise FormRefused from error


def rendered(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """Render a template. Every value is escaped."""
    theme = request.cookies.get("forestall_theme")
    html = (
        templates()
        .get_template(template)
        .render(
            theme=theme if theme in _THEMES else None, path=request.url.path, address=str(request.url.path), **values
        )
    )
    return HTMLResponse(html, status_code=status)


@cache
def templates() -> Environment:
    """Return the templates, compiled once."""
    environment = Environment(
        loader=PackageLoader("console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    environment.filters["part"] = lambda text: quote(str(text), safe="")
    environment.globals.update({"between": between, "static": static, "page_size": _PAGE_SIZE})
    return environment


def static(name: str) -> str:
    """Return the address of a static file. The address changes with any file, so that browsers load new files."""
    return f"/static/{_digest()}/{name}"


@cache
def _digest() -> str:
    """Return one digest for all static files, because scripts import each other by path."""
    static_files = sorted((files(__package__) / "static").iterdir(), key=lambda file: file.name)
    return hashlib.sha256(b"".join(file.read_bytes() for file in static_files)).hexdigest()[:12]
