"""The form of errors."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Problem(BaseModel):
    """A problem document (RFC 9457); more members say more about the problem at hand."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    code: str


def _response(description: str, status: int, code: str, detail: str) -> dict[str, Any]:
    example = {
        "type": f"urn:forestall:problem:{code}",
        "title": code.replace("-", " ").capitalize(),
        "status": status,
        "detail": detail,
        "code": code,
    }
    return {"description": description, "model": Problem, "content": {"application/problem+json": {"example": example}}}


_FULL = (
    "the log is full: 4,999,800 events wait to be matched and with this request it would be 5,000,300, of at most "
    "5,000,000; nothing of the request was taken, send it again in 3 s, with the same Idempotency-Key if it had one; "
    "where this lasts, give the pipeline more cores or raise FORESTALL_LIMITS__MAX_BACKLOG_EVENTS"
)

_LACKING = "this needs the scope patterns; the API key 3f9d1c7a2b604e85 has read"
_OFTEN = "too many requests; send the next one in 2 s"

OVERLOAD_RESPONSES: dict[int | str, dict[str, Any]] = {
    429: _response(
        "Too much waits to be matched: nothing was taken; send it again after Retry-After.", 429, "log-full", _FULL
    ),
    507: _response("Redis has no memory left.", 507, "store-full", "Redis has reached its maxmemory"),
}
PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    401: _response("The API key is missing or wrong.", 401, "unauthorized", "the API key is wrong"),
    403: _response("The API key does not have the scope, or may not touch the stream.", 403, "forbidden", _LACKING),
    422: _response("The request is not of this shape.", 422, "wrong-shape", "body.text: Field required"),
    429: _response("Too many requests; try again after Retry-After.", 429, "rate-limited", _OFTEN),
    503: _response("Redis does not answer; try again.", 503, "store-unavailable", "Redis does not answer"),
    "default": _response("Any other problem.", 404, "unknown-stream", "there is no stream 'orders'"),
}
