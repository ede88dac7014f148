"""Stored answers to requests with an idempotency key, which are returned when a request is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from service.stores.connection import PREFIX, Client, register
from service.stores.records import decode, encode

_PENDING_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentRequest:
    """A request that is carried out at most once.

    Attributes:
        name: Unique name of the request, which its repetitions share.
        fingerprint: Digest of the request's content.
        token: Random token of this attempt.
    """

    name: str
    fingerprint: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a request. The status is 0 while the request is in progress."""

    fingerprint: str
    status: int = 0
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class AnswerStore:
    """Stores the answers to idempotent requests for ``life_s`` seconds.

    The mark of a request in progress expires after a minute, so that a request whose process died can be repeated. A
    process renews the mark of its request after each ``renewal_s`` seconds.
    """

    renewal_s = _PENDING_MS / 3_000

    def __init__(self, client: Client, *, life_s: int = 86_400) -> None:
        self._client = client
        self._life_ms = life_s * 1_000
        self._begin = register(client, "locks/begin_answer")
        self._renew = register(client, "locks/renew")
        self._release = register(client, "locks/release")

    def begin(self, request: IdempotentRequest) -> Answer | None:
        """Mark a request as in progress and return None.

        If an earlier attempt exists, return its answer instead, with status 0 if that attempt is still in progress.
        """
        stored = self._begin(answer=_key(request), pending=_pending(request), pending_ms=_PENDING_MS)
        if stored is None:
            return None
        fields = decode(stored, "the answer to a request")
        fields.pop("token", None)
        return Answer(**fields)

    def renew(self, request: IdempotentRequest) -> None:
        """Extend the mark of a request in progress by another minute, unless it was lost or the request has ended."""
        self._renew(lock=_key(request), token=_pending(request), lock_ms=_PENDING_MS)

    def keep(self, request: IdempotentRequest, answer: Answer) -> None:
        self._client.set(_key(request), encode(**asdict(answer)), px=self._life_ms)

    def release(self, request: IdempotentRequest) -> None:
        """Remove the mark of a failed request, so that the client can repeat the request."""
        self._release(lock=_key(request), token=_pending(request))


def _key(request: IdempotentRequest) -> str:
    return f"{PREFIX}answer:{request.name}"


def _pending(request: IdempotentRequest) -> bytes:
    return encode(fingerprint=request.fingerprint, token=request.token)
