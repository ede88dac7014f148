"""Dead letters: events and log records that could not be taken, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from service.stores.connection import PREFIX
from service.stores.recent import RecentStore
from service.stores.records import encode


class DeadLetterStore(RecentStore):
    """Recent dead letters of the intake and of the pipeline, counted by reason."""

    key: ClassVar[str] = PREFIX + "dead-letters"
    counted: ClassVar[tuple[str, ...]] = ("stream", "code")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter of the intake, ready to be appended together with the rest of its batch.

    Attributes:
        record: What is listed.
        counter: What is counted.
    """

    record: bytes
    counter: bytes

    @classmethod
    def of(cls, *, id: str, stream: str, code: str, reason: str, **fields: Any) -> DeadLetter:
        """A dead letter for the reason ``code``, with more fields as plain JSON."""
        record = {"id": id, "stream": stream, "code": code, "reason": reason, **fields}
        return cls(encode(**record), DeadLetterStore.counter(record))
