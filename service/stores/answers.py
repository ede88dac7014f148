"""Answers to requests with an idempotency key: a repeated request gets the stored answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from service.stores.connection import PREFIX, Client, register
from service.stores.records import decode, encode

_PENDING_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request to be carried out only once: its unique name, a fingerprint of its content, a token of this attempt."""

    name: str
    fingerprint: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a request; the status is 0 while the request is in progress."""

    fingerprint: str
    status: int = 0
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class AnswerStore:
    """Stores the answers for ``life_s`` seconds."""

    def __init__(self, client: Client, *, life_s: int = 86_400) -> None:
        self._client = client
        self._life_ms = life_s * 1_000
        self._begin = register(client, "locks/begin_answer")
        self._release = register(client, "locks/release")

    def begin(self, asked: Asked) -> Answer | None:
        """Begin a request; returns the answer to an earlier attempt, if any, with status 0 while in progress."""
        found = self._begin(answer=_key(asked), pending=_pending(asked), pending_ms=_PENDING_MS)
        if found is None:
            return None
        fields = decode(found, "the answer to a request")
        fields.pop("token", None)
        return Answer(**fields)

    def keep(self, asked: Asked, answer: Answer) -> None:
        """Store the answer to a request."""
        self._client.set(_key(asked), encode(**asdict(answer)), px=self._life_ms)

    def release(self, asked: Asked) -> None:
        """Forget a failed request, so that it may be made again."""
        self._release(lock=_key(asked), token=_pending(asked))


def _key(asked: Asked) -> str:
    return f"{PREFIX}answer:{asked.name}"


def _pending(asked: Asked) -> bytes:
    return encode(fingerprint=asked.fingerprint, token=asked.token)
