"""Answers to requests that carry an idempotency key: the same request is answered again as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from service.stores.connection import PREFIX, Client, register
from service.stores.records import decode, encode

_PENDING_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that is to be done once.

    Attributes:
        name: Tells it from every other one that is to be done once.
        fingerprint: Tells what it asks for.
        token: Tells this try from others.
    """

    name: str
    fingerprint: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a request was answered with.

    Attributes:
        fingerprint: Of the request.
        status: HTTP status; 0 while the request is on its way.
        body: The body.
        headers: Those that belong to the answer.
    """

    fingerprint: str
    status: int = 0
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class AnswerStore:
    """The answers.

    Args:
        client: Where they are.
        life_s: How long they are kept.
    """

    def __init__(self, client: Client, *, life_s: int = 86_400) -> None:
        self._client = client
        self._life_ms = life_s * 1_000
        self._begin = register(client, "locks/begin_answer")
        self._release = register(client, "locks/release")

    def begin(self, asked: Asked) -> Answer | None:
        """Begin with a request, unless it was begun before; the answer at that time, or what stands for it so far."""
        found = self._begin(answer=_key(asked), pending=_pending(asked), pending_ms=_PENDING_MS)
        if found is None:
            return None
        fields = decode(found, "the answer to a request")
        fields.pop("token", None)
        return Answer(**fields)

    def keep(self, asked: Asked, answer: Answer) -> None:
        """Keep the answer to a request."""
        self._client.set(_key(asked), encode(**asdict(answer)), px=self._life_ms)

    def release(self, asked: Asked) -> None:
        """Let a request that failed be made again."""
        self._release(lock=_key(asked), token=_pending(asked))


def _key(asked: Asked) -> str:
    return f"{PREFIX}answer:{asked.name}"


def _pending(asked: Asked) -> bytes:
    return encode(fingerprint=asked.fingerprint, token=asked.token)
