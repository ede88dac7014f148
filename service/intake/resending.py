"""Dead letters: look them up, and resend their events after the cause is fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import orjson

from service.errors import NotReplayable
from service.intake.posting import Intake
from service.runtime import Stores
from service.stores import ReplayOutcome
from streams import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The result of resending dead letters.

    ``outcomes`` has the outcome of each resent letter by its id, in the order of resending. ``left`` is the number of
    letters that match the request and are not accepted yet.
    """

    outcomes: Mapping[str, ReplayOutcome]
    left: int


class DeadLetters:
    """Looks up and resends dead letters."""

    def __init__(self, stores: Stores, intake: Intake, clock: Clock) -> None:
        self._stores = stores
        self._intake = intake
        self._clock = clock

    def get(self, letter_id: str) -> tuple[dict[str, Any], ReplayOutcome | None]:
        """Return a dead letter as stored, and the outcome of its last resending, or None if it was never resent."""
        letter = self._stores.dead_letters.get(letter_id)
        (outcome,) = self._stores.dead_letters.outcomes([letter_id])
        return letter, outcome

    def replay(self, letter_id: str) -> ReplayOutcome:
        """Resend the event of a dead letter through the intake, unless the event was accepted before.

        If the event is refused again, no second letter is created. The outcome is stored with this letter, which may be
        resent later. Raises ``NotReplayable`` if the letter does not contain the complete event.
        """
        letter, outcome = self.get(letter_id)
        if outcome is not None and outcome.is_accepted:
            return outcome
        return self._send(letter)

    def replay_all(self, *, stream: str | None, code: str | None, limit: int) -> Replayed:
        """Resend up to ``limit`` letters of a stream and a code that were not accepted yet.

        Letters that were never resent are first, from oldest to newest. The others follow in the order of their last
        refusal. If an error occurs, the outcomes before the error remain stored.
        """
        store = self._stores.dead_letters
        criteria = {name: value for name, value in (("stream", stream), ("code", code)) if value is not None}
        letters = [letter for letter in store.all() if criteria.items() <= letter.items() and _is_replayable(letter)]
        outcomes = store.outcomes([letter["id"] for letter in letters])
        refused_at = [
            (0 if outcome is None else outcome.at_us, letter)
            for letter, outcome in zip(letters[::-1], outcomes[::-1], strict=True)
            if outcome is None or not outcome.is_accepted
        ]
        due = [letter for _, letter in sorted(refused_at, key=itemgetter(0))]
        new_outcomes = {letter["id"]: self._send(letter) for letter in due[:limit]}
        return Replayed(
            outcomes=new_outcomes, left=len(due) - sum(outcome.is_accepted for outcome in new_outcomes.values())
        )

    def _send(self, letter: Mapping[str, Any]) -> ReplayOutcome:
        if not _is_replayable(letter):
            raise NotReplayable(
                f"the dead letter {letter['id']!r} cannot be sent again: only events that the intake refused and that "
                "are kept whole can",
                letter=letter["id"],
            )
        objects, shape, now_us = [orjson.loads(letter["event"])], letter["shape"], self._clock.now_us()
        rejected = self._intake.judge(letter["stream"], objects, shape)
        if not rejected:
            key = f"dead-letter:{letter['id']}"
            rejected = self._intake.ingest(letter["stream"], objects, shape=shape, idempotency_key=key).rejected
        outcome = ReplayOutcome(
            at_us=now_us,
            is_accepted=not rejected,
            code=rejected[0].code if rejected else None,
            detail=rejected[0].detail if rejected else None,
        )
        self._stores.dead_letters.note_outcome(letter["id"], outcome)
        return outcome


def _is_replayable(letter: Mapping[str, Any]) -> bool:
    return letter.get("whole") is True and "shape" in letter
