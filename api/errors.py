"""Errors as problem documents (RFC 9457), by one table from classes to statuses.

    ApiError                     api.errors
    ├── Unauthorized             no key, or the wrong one
    ├── Forbidden                the key does not have the scope, or may not touch the stream
    ├── ForeignPage              a page of another site calls, through a browser, an API that demands no key
    ├── RateLimited              too many requests, or too many with a wrong key
    ├── BodyTooLarge             the body is larger than the limit
    ├── BodyTooSlow              the body does not come in time
    ├── TwoLengths               the request says the length of its body in two ways
    ├── UnsupportedMediaType     the body's media type is not read here
    ├── MalformedBody            the body is not JSON
    ├── WrongShape               the body is JSON, but not an object of the form that is asked for
    ├── EventForm                the body is JSON, but neither an event nor a list of events
    ├── NothingAccepted          of the events of a request none was taken
    ├── KeyOfAnother             an idempotency key came before with another request
    ├── KeyInUse                 a request with that idempotency key is on its way
    ├── TooMuchWork              the work of a request is beyond a limit
    ├── TooBusy                  too many requests wait for a worker process
    ├── WorkFailed               a worker process failed: a bug
    ├── NotReady                 something that the service needs is missing
    └── NotListening             the process of the API does not get as far as taking requests

An error without a row is a 500 and a bug.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar

import structlog
from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from api.methods import allowed_methods
from constraints import ContradictoryConstraints, InvalidConstraints, UnsatisfiablePattern
from nfa import KeyMismatch, PatternRefused
from service import (
    ANYBODY,
    AnswersLate,
    Conflict,
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
from streams import DeclarationError, EventRejected, Fault, ForestallError
from workflows import AutomatonTooLarge, InvalidWorkflow, ModelRefused, UnsoundWorkflow, WorkflowTooLarge

MEDIA_TYPE = "application/problem+json"

_RETRY_AFTER_S = 1
_LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.INSUFFICIENT_STORAGE)
_STANDARD = ("type", "title", "status", "detail", "code")


class ApiError(ForestallError):
    """A request cannot be read, or must not be answered."""

    code: ClassVar[str] = "api"
    fault: ClassVar[Fault] = "caller"


class Unauthorized(ApiError):
    """The API key is missing or wrong."""

    code: ClassVar[str] = "unauthorized"


class Forbidden(ApiError):
    """The key lacks the required scope, or access to the stream; the details name it."""

    code: ClassVar[str] = "forbidden"


class ForeignPage(ApiError):
    """A page of another site calls, through a browser on this machine, an API that demands no key."""

    code: ClassVar[str] = "foreign-page"


class RateLimited(ApiError):
    """Too many requests, or too many with a wrong key; the detail ``retry_after_s`` says when to try again."""

    code: ClassVar[str] = "rate-limited"
    is_retryable: ClassVar[bool] = True


class BodyTooLarge(ApiError):
    """The body is larger than the limit."""

    code: ClassVar[str] = "body-too-large"


class BodyTooSlow(ApiError):
    """The body does not come in time."""

    code: ClassVar[str] = "body-too-slow"
    is_retryable: ClassVar[bool] = True


class TwoLengths(ApiError):
    """The request says the length of its body in two ways."""

    code: ClassVar[str] = "two-lengths"


class UnsupportedMediaType(ApiError):
    """The body's media type or encoding is not read here."""

    code: ClassVar[str] = "unsupported-media-type"


class MalformedBody(ApiError):
    """The body cannot be parsed; line and column are in the details."""

    code: ClassVar[str] = "malformed-body"


class WrongShape(ApiError):
    """The body is JSON, but not of the form that is asked for; every fault is named with its place."""

    code: ClassVar[str] = "wrong-shape"


class EventForm(ApiError):
    """The body is JSON, but not of the form that its media type promises."""

    code: ClassVar[str] = "event-form"


class NothingAccepted(ApiError):
    """Of the events of a request none was taken; the details say why of each, as the answer to some that were would."""

    code: ClassVar[str] = "nothing-accepted"


class KeyOfAnother(ApiError):
    """An idempotency key came before with another request."""

    code: ClassVar[str] = "idempotency-key-mismatch"


class KeyInUse(ApiError):
    """A request with that idempotency key is on its way; ask again."""

    code: ClassVar[str] = "idempotency-key-in-use"
    is_retryable: ClassVar[bool] = True


class TooMuchWork(ApiError):
    """The work of a request is beyond a limit of time, memory or the answer's size; the details name its setting."""

    code: ClassVar[str] = "too-much-work"


class TooBusy(ApiError):
    """Too many requests wait for a worker process."""

    code: ClassVar[str] = "too-busy"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class WorkFailed(ApiError):
    """A worker process failed before it answered."""

    code: ClassVar[str] = "work-failed"
    fault: ClassVar[Fault] = "internal"


class NotReady(ApiError):
    """Something that the service needs is missing; the details say what."""

    code: ClassVar[str] = "not-ready"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class NotListening(ApiError):
    """The process of the API does not get as far as taking requests."""

    code: ClassVar[str] = "not-listening"
    fault: ClassVar[Fault] = "external"


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
    KeyOfAnother: HTTPStatus.UNPROCESSABLE_ENTITY,
    KeyInUse: HTTPStatus.CONFLICT,
    TooMuchWork: HTTPStatus.UNPROCESSABLE_ENTITY,
    TooBusy: HTTPStatus.SERVICE_UNAVAILABLE,
    NotReady: HTTPStatus.SERVICE_UNAVAILABLE,
    # service
    NotFound: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
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
}


def add_handlers(app: FastAPI) -> None:
    """Let an application answer every error with a problem document."""
    app.add_exception_handler(ForestallError, _on_known_error)
    app.add_exception_handler(RequestValidationError, _on_wrong_shape)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_bug)


def status_of(error: ForestallError) -> HTTPStatus:
    """The status of an error: that of its nearest class in the table."""
    for kind in type(error).__mro__:
        if kind in STATUS:
            return STATUS[kind]
    return HTTPStatus.INTERNAL_SERVER_ERROR


def problem(error: ForestallError) -> JSONResponse:
    """The problem document of an error."""
    status = status_of(error)
    if status is HTTPStatus.INTERNAL_SERVER_ERROR:
        structlog.get_logger(__name__).error("error-without-status", code=error.code, error=error.message)
        return _document(status, "internal", "the service failed; its log says why")
    headers = {}
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status in _LATER:
        headers["Retry-After"] = str(error.details.get("retry_after_s", _RETRY_AFTER_S))
    return _document(status, error.code, error.message, error.details, headers)


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
        **{name: value for name, value in (more or {}).items() if name not in _STANDARD},
    }
    return JSONResponse(body, status.value, headers, MEDIA_TYPE)


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
    return problem(_wrong_shape(faults))


def wrong_shape(error: ValidationError) -> WrongShape:
    """The error for a body, read by hand, that is not of its model's form."""
    return _wrong_shape([{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors()])


def _wrong_shape(faults: Sequence[Any]) -> WrongShape:
    listed = [{"where": ".".join(map(str, fault["loc"])), "message": fault["msg"]} for fault in faults]
    detail = "; ".join(f"{fault['where']}: {fault['message']}" for fault in listed)
    return WrongShape(detail, errors=jsonable_encoder(listed))


def _malformed(text: str, place: int, reason: str) -> MalformedBody:
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    return malformed_json(reason, line, column)


def malformed_json(reason: str, line: int, column: int) -> MalformedBody:
    """The error for a body that is not JSON."""
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
    return _document(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "the service failed; its log says why")
