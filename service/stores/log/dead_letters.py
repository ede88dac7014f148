"""Dead letters: events and log entries that could not be processed, with the reason and the result of resending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, cast

from service.errors import UnknownDeadLetter
from service.stores.connection import Client, register
from service.stores.records import decode, encode
from service.stores.results.recent import RecentStore, list_key
from shards import DEAD_LETTER

DEAD_LETTERS_KEY = list_key(DEAD_LETTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOutcome:
    """The result of resending a dead letter."""

    at_us: int
    is_accepted: bool
    code: str | None = None
    detail: str | None = None


class DeadLetterStore(RecentStore):
    """The list of recent dead letters from the intake and the pipeline, and their counters by reason."""

    def __init__(self, client: Client, *, kept: int = 10_000) -> None:
        super().__init__(client, DEAD_LETTER, kept=kept)
        self._note_outcome = register(client, "results/note_outcome")

    def counts(self, **criteria: str) -> list[dict[str, Any]]:
        """Count the dead letters since the store was created. Return a JSON object for each stream and code.

        ``criteria`` selects dead letters by the values of their members.
        """
        sums: Counter[tuple[str, str]] = Counter()
        for counter in super().counts(**criteria):
            sums[counter["stream"], counter["code"]] += counter["count"]
        return [{"stream": stream, "code": code, "count": count} for (stream, code), count in sums.items()]

    def counts_by_pattern(self) -> list[dict[str, Any]]:
        """Count the dead letters that concern patterns. Return a JSON object for each stream, code and pattern."""
        return [counter for counter in super().counts() if counter["pattern"]]

    def get(self, letter_id: str) -> dict[str, Any]:
        """Return a retained dead letter. If there is none with this id, raise ``UnknownDeadLetter``."""
        for letter in self.all():
            if letter["id"] == letter_id:
                return letter
        raise UnknownDeadLetter(
            f"there is no dead letter {letter_id!r}, or it is no longer kept; GET /v1/dead-letters lists them",
            letter=letter_id,
        )

    def all(self) -> Iterator[dict[str, Any]]:
        """Return an iterator over all retained dead letters, newest first."""
        return (record for _, record in self.newest_first())

    def note_outcome(self, letter_id: str, outcome: ReplayOutcome) -> None:
        """Store the result of resending a letter. The result is retained at least as long as the letter."""
        self._note_outcome(
            outcomes=self.key + ":replayed",
            times=self.key + ":replayed:times",
            letter=letter_id,
            outcome=encode(**asdict(outcome)),
            at_us=outcome.at_us,
            kept=2 * self._kept,
        )

    def outcomes(self, letter_ids: list[str]) -> list[ReplayOutcome | None]:
        """Return the result of the last resending of each letter, or None for a letter that was not resent."""
        if not letter_ids:
            return []
        bodies = cast("list[bytes | None]", self._client.hmget(self.key + ":replayed", letter_ids))
        return [None if body is None else ReplayOutcome(**decode(body, "a replay")) for body in bodies]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that the intake rejected, encoded for the store. It is stored in the same script as the accepted events.

    ``counter`` is the name of the counter that the dead letter increments.
    """

    record: bytes
    counter: bytes

    @classmethod
    def of(cls, *, id: str, stream: str, code: str, reason: str, **fields: Any) -> DeadLetter:
        """Build a dead letter with the error code and the text of the reason. ``fields`` are further JSON members."""
        record = {"id": id, "stream": stream, "code": code, "reason": reason, **fields}
        return cls(encode(**record), DEAD_LETTER.counter_of(record).encode())
