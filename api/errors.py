"""Errors as problem documents (RFC 9457): a table maps error classes to HTTP statuses.

An error without an entry in the table is a bug, and is answered with status 500.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from api.faults import Fault, form_faults
from api.methods import allowed_methods
from api.wire import MOST_FAULTS
from constraints import ContradictoryConstraints, InvalidConstraints, UnsatisfiablePattern
from nfa import KeyMismatch, PatternRefused, TooManyRows
from service import (
    ANYBODY,
    AnswersLate,
    Conflict,
    IdempotencyKeyReused,
    LimitExceeded,
    LogFull,
    LogResharding,
    NotFound,
    PatternOnOtherStream,
    PipelineAway,
    PreconditionFailed,
    RegistryContended,
    RequestRefused,
    StoreFull,
    StoreUnavailable,
    TooManyListeners,
    TooManyQuestions,
)
from shards import OperatorRefused
from streams import DeclarationError, EventRejected, ForestallError
from streams.tables import CalendarRefused, TableColumnUnknown, TableMissing, TableRefused, TableUnknown
from workflows import AutomatonTooLarge, InvalidWorkflow, ModelRefused, UnsoundWorkflow, WorkflowTooLarge

MEDIA_TYPE = "application/problem+json"
REPLAYED = MappingProxyType({"Idempotency-Replayed": "true"})
"""The header of a replayed answer."""

_RETRY_AFTER_S = 1
_LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.INSUFFICIENT_STORAGE)
_STANDARD = ("type", "title", "status", "detail", "code", "instance")


class ApiError(ForestallError, code="api", fault="caller"):
    """Base class of the errors of HTTP requests: the request cannot be read, or must not be answered."""


class Unauthorized(ApiError, code="unauthorized"):
    """The API key is missing or wrong."""


class Forbidden(ApiError, code="forbidden"):
    """The key lacks the required scope, or access to the stream. The details name the missing scope or stream."""


class ForeignPage(ApiError, code="foreign-page"):
    """Another site's page calls, through a browser on this machine, an API that requires no key."""


class RateLimited(ApiError, code="rate-limited", is_retryable=True):
    """Too many requests, or too many wrong keys. The detail ``retry_after_s`` is the time to wait, in seconds."""


class BodyTooLarge(ApiError, code="body-too-large"):
    """The body is larger than the limit."""


class BodyTooSlow(ApiError, code="body-too-slow", is_retryable=True):
    """The body did not arrive in time."""


class TwoLengths(ApiError, code="two-lengths"):
    """The request declares the length of its body in two ways."""


class UnsupportedMediaType(ApiError, code="unsupported-media-type"):
    """The body's media type or encoding is not supported."""


class MalformedBody(ApiError, code="malformed-body"):
    """The body cannot be parsed. The details contain line and column."""


class WrongShape(ApiError, code="wrong-shape"):
    """A request does not have the required form. ``errors`` lists every fault with its place."""

    def __init__(self, *faults: Fault | str, is_cut: bool = False) -> None:
        """Create the error from faults. A fault may be given as a text: its place, a colon, and the message.

        ``is_cut``: there may be further faults, which are not among ``faults``.
        """
        listed = [fault if isinstance(fault, Fault) else Fault(*fault.split(": ", 1)) for fault in faults]
        super().__init__(
            "; ".join(f"{fault.where}: {fault.message}" for fault in listed)
            + (f"; at most {MOST_FAULTS} faults are listed" if is_cut else ""),
            errors=[{"where": fault.where, "message": fault.message} for fault in listed],
        )


class EventForm(ApiError, code="event-form"):
    """The body is JSON, but does not have the form of its media type."""


class NothingAccepted(ApiError, code="nothing-accepted"):
    """No event of a request was accepted. The details give the reason for each event, as in a successful answer."""


class KeyInUse(ApiError, code="idempotency-key-in-use", is_retryable=True):
    """A request with this idempotency key is in progress. The client may try again later."""


class TooMuchWork(ApiError, code="too-much-work"):
    """The work of a request exceeds a limit of time, memory or answer size. The details name the setting."""


class TooBusy(ApiError, code="too-busy", fault="external", is_retryable=True):
    """Too many requests are waiting for a worker process."""


class WorkFailed(ApiError, code="work-failed", fault="internal"):
    """A worker process failed before it could answer."""


class NotReady(ApiError, code="not-ready", fault="external", is_retryable=True):
    """A component that the service needs is not available. The details name the component."""


class NotListening(ApiError, code="not-listening", fault="external"):
    """The API's process could not listen on its address."""


STATUS: Mapping[type[ForestallError], HTTPStatus] = {
    # this package
    Unauthorized: HTTPStatus.UNAUTHORIZED,
    Forbidden: HTTPStatus.FORBIDDEN,
    ForeignPage: HTTPStatus.FORBIDDEN,
    RateLimited: HTTPStatus.TOO_MANY_REQUESTS,
    BodyTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    BodyTooSlow: HTTPStatus.REQUEST_TIMEOUT,
    TwoLengths: HTTPStatus.BAD_REQUEST,
    UnsupportedMediaType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    MalformedBody: HTTPStatus.BAD_REQUEST,
    WrongShape: HTTPStatus.UNPROCESSABLE_ENTITY,
    EventForm: HTTPStatus.BAD_REQUEST,
    NothingAccepted: HTTPStatus.UNPROCESSABLE_ENTITY,
    KeyInUse: HTTPStatus.CONFLICT,
    TooMuchWork: HTTPStatus.UNPROCESSABLE_ENTITY,
    TooBusy: HTTPStatus.SERVICE_UNAVAILABLE,
    NotReady: HTTPStatus.SERVICE_UNAVAILABLE,
    # service
    NotFound: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    IdempotencyKeyReused: HTTPStatus.UNPROCESSABLE_ENTITY,
    PreconditionFailed: HTTPStatus.PRECONDITION_FAILED,
    RegistryContended: HTTPStatus.SERVICE_UNAVAILABLE,
    LimitExceeded: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    RequestRefused: HTTPStatus.BAD_REQUEST,
    StoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreFull: HTTPStatus.INSUFFICIENT_STORAGE,
    TooManyListeners: HTTPStatus.SERVICE_UNAVAILABLE,
    TooManyQuestions: HTTPStatus.SERVICE_UNAVAILABLE,
    PipelineAway: HTTPStatus.SERVICE_UNAVAILABLE,
    AnswersLate: HTTPStatus.GATEWAY_TIMEOUT,
    LogFull: HTTPStatus.TOO_MANY_REQUESTS,
    LogResharding: HTTPStatus.SERVICE_UNAVAILABLE,
    # core
    PatternRefused: HTTPStatus.BAD_REQUEST,
    KeyMismatch: HTTPStatus.BAD_REQUEST,
    TooManyRows: HTTPStatus.UNPROCESSABLE_ENTITY,
    OperatorRefused: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidConstraints: HTTPStatus.BAD_REQUEST,
    ContradictoryConstraints: HTTPStatus.BAD_REQUEST,
    UnsatisfiablePattern: HTTPStatus.CONFLICT,
    ModelRefused: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidWorkflow: HTTPStatus.UNPROCESSABLE_ENTITY,
    UnsoundWorkflow: HTTPStatus.UNPROCESSABLE_ENTITY,
    WorkflowTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    AutomatonTooLarge: HTTPStatus.UNPROCESSABLE_ENTITY,
    DeclarationError: HTTPStatus.BAD_REQUEST,
    EventRejected: HTTPStatus.BAD_REQUEST,
    TableUnknown: HTTPStatus.BAD_REQUEST,
    TableColumnUnknown: HTTPStatus.BAD_REQUEST,
    TableRefused: HTTPStatus.UNPROCESSABLE_ENTITY,
    CalendarRefused: HTTPStatus.UNPROCESSABLE_ENTITY,
    TableMissing: HTTPStatus.SERVICE_UNAVAILABLE,
}


def add_handlers(app: FastAPI) -> None:
    """Register handlers that answer every error with a problem document."""
    app.add_exception_handler(ForestallError, _on_known_error)
    app.add_exception_handler(RequestValidationError, _on_wrong_shape)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_bug)


def status_of(error: ForestallError) -> HTTPStatus:
    """Return the HTTP status of an error, from the nearest of its base classes in the table."""
    for kind in type(error).__mro__:
        if kind in STATUS:
            return STATUS[kind]
    return HTTPStatus.INTERNAL_SERVER_ERROR


def problem(error: ForestallError) -> JSONResponse:
    """Return the problem document of an error."""
    status = status_of(error)
    if status is HTTPStatus.INTERNAL_SERVER_ERROR:
        structlog.get_logger(__name__).error("error-without-status", code=error.code, error=error.message)
        return _document(status, "internal", "the service failed; its log says why")
    details = dict(error.details)
    headers = dict(REPLAYED) if details.pop("replayed", False) else {}
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status in _LATER:
        headers["Retry-After"] = str(details.get("retry_after_s", _RETRY_AFTER_S))
    return _document(status, error.code, error.message, details, headers)


def _document(
    status: HTTPStatus,
    code: str,
    detail: str,
    more: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    body = {
        "type": f"urn:forestall:problem:{code}",
        "title": code.replace("-", " ").capitalize(),
        "status": status.value,
        "detail": detail,
        "code": code,
        **_instance(),
        **{name: value for name, value in (more or {}).items() if name not in _STANDARD},
    }
    help_page = f'</manual/problems#{code}>; rel="help"'
    return JSONResponse(body, status.value, {"Link": help_page, **(headers or {})}, MEDIA_TYPE)


def _instance() -> dict[str, str]:
    request_id = structlog.contextvars.get_contextvars().get("request_id")
    return {"instance": f"urn:forestall:request:{request_id}"} if request_id else {}


def _on_known_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ForestallError)
    caller = getattr(request.state, "caller", ANYBODY)
    if isinstance(error, PatternOnOtherStream) and caller.streams is not None:
        return problem(PatternOnOtherStream("the name is taken on another stream; choose another name"))
    return problem(error)


def _on_wrong_shape(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    faults = error.errors()
    if faults and faults[0]["type"] == "json_invalid":
        return problem(_malformed(str(error.body), int(faults[0]["loc"][-1]), str(faults[0]["ctx"]["error"])))
    return problem(_wrong_shape(faults, error.body))


def wrong_shape(error: ValidationError, body: object) -> WrongShape:
    """Convert the validation error of a body to ``WrongShape``, for operations that validate bodies themselves."""
    return _wrong_shape([{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors()], body)


def _wrong_shape(faults: Sequence[Any], body: object) -> WrongShape:
    return WrongShape(*form_faults(faults, body), is_cut=len(faults) >= MOST_FAULTS)


def _malformed(text: str, place: int, reason: str) -> MalformedBody:
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    return malformed_json(reason, line, column)


def malformed_json(reason: str, line: int, column: int) -> MalformedBody:
    """Return the error for a body that is not valid JSON."""
    return MalformedBody(
        f"line {line}, column {column}: the body is not JSON: {reason}", line=line, column=column, reason=reason
    )


def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    code = status.phrase.lower().replace(" ", "-")
    path = request.url.path
    if status is HTTPStatus.NOT_FOUND:
        return _document(status, code, f"there is nothing at {path}; /docs lists what there is", {"path": path})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = allowed_methods(request)
        if request.method == "OPTIONS":
            return Response(status_code=HTTPStatus.NO_CONTENT, headers={"Allow": ", ".join(allowed)})
        detail = f"{path} does not take {request.method}; it takes {', '.join(allowed)}"
        more = {"path": path, "allowed": allowed}
        return _document(status, code, detail, more, {"Allow": ", ".join(allowed)})
    if isinstance(error.__cause__, ValueError | RecursionError):  # the framework could not read the body
        return problem(MalformedBody(f"the body is not valid JSON: {error.__cause__}"))
    return _document(status, code, str(error.detail), headers=error.headers)


def _on_bug(_: Request, error: Exception) -> JSONResponse:
    return bug_problem()


def bug_problem() -> JSONResponse:
    """Return the problem document for a request that failed because of a bug. The server then closes the connection."""
    detail = "the service failed; its log says why"
    return _document(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", detail, headers={"Connection": "close"})
