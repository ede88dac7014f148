"""The form of problem documents, and the problems that an operation may answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from api.problem_codes import codes_of


class Problem(BaseModel):
    """A problem document (RFC 9457); further members give the details of the problem."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    code: str
    instance: str | None = Field(None, description="`urn:forestall:request:` and the `X-Request-Id` of the answer.")


_RETRY_AFTER: dict[str, Any] = {
    "description": "Seconds after which to try again.",
    "required": True,
    "schema": {"type": "integer", "minimum": 1},
}
_HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"description": "`Bearer`.", "required": True, "schema": {"const": "Bearer"}}},
    429: {"Retry-After": _RETRY_AFTER},
    503: {"Retry-After": _RETRY_AFTER},
    507: {"Retry-After": _RETRY_AFTER},
}


def _response(description: str, status: int, code: str, detail: str) -> dict[str, Any]:
    return {
        "description": description,
        "headers": _HEADERS.get(status, {}),
        "content": {"application/problem+json": {"schema": _PROBLEM, "example": _example(status, code, detail)}},
    }


def _example(status: int, code: str, detail: str) -> dict[str, Any]:
    return {
        "type": f"urn:forestall:problem:{code}",
        "title": code.replace("-", " ").capitalize(),
        "status": status,
        "detail": detail,
        "code": code,
    }


_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_FULL = (
    "the log is full: 4,999,800 events wait to be matched and with this request it would be 5,000,300, of at most "
    "5,000,000; nothing of the request was accepted; send it again in 3 s, with the same Idempotency-Key if it had "
    "one; "
    "if this lasts, give the pipeline more cores or raise FORESTALL_LIMITS__MAX_BACKLOG_EVENTS"
)
_LACKING = "this needs the scope patterns; the API key 3f9d1c7a2b604e85 has read"
_OFTEN = "too many requests; send the next one in 2 s"
_CHANGED = "the pattern 'expensive_cancelled' has changed since it was read; its ETag is 5be1c2a7"
_LARGE = "the body is larger than 5000000 bytes; send less at a time"
_MEDIA = "media type 'text/plain' is not read here; send application/json"
_CURSOR = "query.after: 'x' is not a cursor; send the 'next' of an earlier page"

OVERLOAD_RESPONSES: dict[int | str, dict[str, Any]] = {
    429: _response(
        "Too many requests, or the backlog is full: nothing was accepted. Retry after the time in Retry-After.",
        429,
        "log-full",
        _FULL,
    ),
}
ASKING_RESPONSES: dict[int | str, dict[str, Any]] = {
    503: _response(
        "The pipeline does not run, or too many questions wait; try again.",
        503,
        "pipeline-not-running",
        "the pipeline does not run",
    ),
    504: _response("Not all shards have answered in time; try again.", 504, "answers-late", "2 of 8 shards answered"),
}
READY_RESPONSES: dict[int | str, dict[str, Any]] = {
    503: _response(
        "The service is not ready; 'missing' names the missing parts.", 503, "not-ready", "Redis does not answer"
    ),
}

_PROBLEMS: dict[int, dict[str, Any]] = {
    400: _response("The request cannot be read, or its content is refused.", 400, "invalid-cursor", _CURSOR),
    401: _response("The API key is missing or wrong.", 401, "unauthorized", "the API key is wrong"),
    403: _response("The API key does not have the scope, or may not touch the stream.", 403, "forbidden", _LACKING),
    404: _response(
        "A resource that the request names does not exist.", 404, "unknown-stream", "there is no stream 'orders'"
    ),
    409: _response("The request conflicts with an existing resource.", 409, "conflict", "the name is taken"),
    412: _response("The resource has changed since it was read.", 412, "precondition-failed", _CHANGED),
    413: _response("The request is larger than a limit of the service.", 413, "body-too-large", _LARGE),
    415: _response("The body has an unsupported type or encoding.", 415, "unsupported-media-type", _MEDIA),
    422: _response("The request does not have the required form.", 422, "wrong-shape", "body.text: Field required"),
    429: _response("Too many requests; try again after Retry-After.", 429, "rate-limited", _OFTEN),
    503: _response("Redis does not answer; try again.", 503, "store-unavailable", "Redis does not answer"),
    507: _response("Redis has no memory left.", 507, "store-full", "Redis has reached its maxmemory"),
}
_ALWAYS = (401, 403, 422, 429, 503)
_CHANGING = (404, 409, 413, 507)
_WITH_BODY = (400, 404, 413, 415)
_READING = {"GET"}


def problem_responses(route: APIRoute) -> dict[int | str, dict[str, Any]]:
    """Return the problems that an operation may answer, derived from its inputs, in the form of OpenAPI responses.

    Every operation may fail because of authentication, the form of the request, the rate limit or the store. A
    parameter may be invalid, or refer to a missing resource. A change may conflict with stored resources. A body may be
    too large, or have the wrong media type.
    """
    parameters = set(_parameters(route.dependant))
    statuses = set(_ALWAYS)
    if parameters:
        statuses |= {400, 404}
    if not (route.methods or set()) <= _READING:
        statuses |= set(_CHANGING)
    if "if_match" in parameters:
        statuses.add(412)
    if _has_body(route):
        statuses |= set(_WITH_BODY)
    return {status: _PROBLEMS[status] for status in sorted(statuses)}


def name_codes(path: str, verb: str, operation: dict[str, Any]) -> None:
    """Add problem codes, and an example with one of them, to the problems in an operation's description."""
    traits = {"*", path.removeprefix("/v1/").split("/")[0], *operation["tags"]}
    traits |= {f"+{parameter['name'].replace('-', '_')}" for parameter in operation.get("parameters", ())}
    traits |= {"body"} if "requestBody" in operation else set()
    traits |= set() if verb == "get" else {"change"}
    for status, answer in operation["responses"].items():
        if codes := codes_of(int(status), traits) if status >= "4" else []:
            content = answer["content"]["application/problem+json"]
            if content["example"]["code"] not in codes:
                content = {
                    **content,
                    "example": _example(int(status), codes[0], "what is wrong, and what would be right"),
                }
            listed = ", ".join(f"`{code}`" for code in codes)
            operation["responses"][status] = {
                **answer,
                "description": f"{answer['description']} Codes: {listed}.",
                "content": {"application/problem+json": content},
                "x-codes": codes,
            }


def _has_body(route: APIRoute) -> bool:
    return route.body_field is not None or "requestBody" in (route.openapi_extra or {})


def _parameters(dependant: Dependant) -> Iterator[str]:
    for field in (*dependant.path_params, *dependant.query_params, *dependant.header_params):
        yield field.name
    for part in dependant.dependencies:
        yield from _parameters(part)
