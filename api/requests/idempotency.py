"""Idempotent creation: a repeated request with the same ``Idempotency-Key`` gets the first answer again.

An operation takes part if its router has ``route_class=IdempotentRoute``, and if it has the dependency
``Depends(once)`` after the check of the API key. Only successful answers are stored, separately for each caller.
Members that are shown only once, such as a secret, are not stored.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from hashlib import blake2b
from typing import Annotated, Any

import orjson
from fastapi import Header, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from api.errors import REPLAYED, KeyInUse
from api.requests.bodies import RawBody
from api.services import Served, Services
from api.wire import secrets_of
from service import Answer, IdempotencyKeyReused, IdempotentRequest, StoreUnavailable, check_idempotency_key

_HEADER = "idempotency-key"
_KEPT_HEADERS = ("content-type", "etag", "location")
_CREDENTIALS = ("authorization", "x-api-key")
_DIGEST_BYTES = 16


class _AnsweredBefore(Exception):
    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def once(
    request: Request,
    body: RawBody,
    services: Served,
    idempotency_key: Annotated[
        str | None,
        Header(description="Your name for this request: a repetition within a day is not carried out again."),
    ] = None,
) -> None:
    """Admit a request with an idempotency key only once, and let ``IdempotentRoute`` return the answer of a repetition.

    Raises ``IdempotencyKeyReused`` if the key was used with another request, and ``KeyInUse`` if the same request is in
    progress.
    """
    check_idempotency_key(idempotency_key)
    if idempotency_key is None:
        return
    attempt = _idempotent_request(request, body, idempotency_key)
    stored_answer = services.stores.answers.begin(attempt)
    if stored_answer is None:
        request.state.asked = attempt
        return
    if stored_answer.fingerprint != attempt.fingerprint:
        raise IdempotencyKeyReused(
            f"the idempotency key {idempotency_key!r} was used with another request; use a new key for each request"
        )
    if not stored_answer.status:
        raise KeyInUse(
            f"the request with the idempotency key {idempotency_key!r} is still in progress; retry in a moment"
        )
    raise _AnsweredBefore(stored_answer)


class IdempotentRoute(APIRoute):
    """A route that stores the answers to requests with an idempotency key, and returns them to repetitions."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        secrets = secrets_of(self.response_model)

        async def handle_once(request: Request) -> Response:
            response: Response | None = None
            renewal = asyncio.create_task(_renew(request)) if _HEADER in request.headers else None
            try:
                response = await handle(request)
                return response
            except _AnsweredBefore as before:
                answer = before.answer
                headers = {**answer.headers, **REPLAYED}
                return Response(answer.body.encode(), answer.status, headers)
            finally:
                if renewal is not None:
                    renewal.cancel()
                if hasattr(request.state, "asked"):
                    await run_in_threadpool(_settle, request, response, secrets)

        return handle_once


async def _renew(request: Request) -> None:
    """Keep an idempotent request marked as in progress until this task is cancelled."""
    services: Services = request.state.services
    answers = services.stores.answers
    while True:
        await asyncio.sleep(answers.renewal_s)
        if hasattr(request.state, "asked"):
            with suppress(StoreUnavailable):
                await run_in_threadpool(answers.renew, request.state.asked)


def forget(request: Request, body: bytes) -> None:
    """Release the idempotency key of a request that no worker finished, so that the client may repeat the request."""
    idempotency_key = request.headers.get(_HEADER)
    if idempotency_key is not None:
        services: Services = request.state.services
        with suppress(StoreUnavailable):
            services.stores.answers.release(_idempotent_request(request, body, idempotency_key))


def _idempotent_request(request: Request, body: bytes, idempotency_key: str) -> IdempotentRequest:
    path = f"{request.method} {request.url.path}"
    credentials = [request.headers.get(name, "") for name in _CREDENTIALS]
    return IdempotentRequest(
        name=_digest(path, idempotency_key, *credentials),
        fingerprint=_digest(request.url.query, body.hex()),
        token=getattr(request.state, "asked_token", None) or uuid.uuid4().hex,
    )


def _settle(request: Request, response: Response | None, secrets: frozenset[str]) -> None:
    """Store a successful answer to an idempotent request, without secrets. After a failure, permit a repetition."""
    attempt: IdempotentRequest = request.state.asked
    services: Services = request.state.services
    answers = services.stores.answers
    with suppress(StoreUnavailable):  # the request has taken effect, so the caller must get the answer
        if response is None or response.status_code >= 300:
            answers.release(attempt)
            return
        headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        body = _without(secrets, bytes(response.body)).decode()
        answers.keep(
            attempt, Answer(fingerprint=attempt.fingerprint, status=response.status_code, body=body, headers=headers)
        )


def _without(secrets: frozenset[str], body: bytes) -> bytes:
    return orjson.dumps(orjson.loads(body) | dict.fromkeys(secrets)) if secrets else body


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=_DIGEST_BYTES).hexdigest()
