"""Errors of joins: reasons of suspensions and of dead letters.

ShardError
├── KeyFinished          an event has a key that an input had finished
├── KeyNotWhole          a key is not a whole number, in a join that waits by the order of keys
├── ResultLimitReached   an event led to more results at once than are emitted
└── RetractionLate       a retraction names an event that the join does not hold
OperatorSuspended
└── JoinSuspended        a join is suspended
"""

from __future__ import annotations

from shards.errors import OperatorSuspended, ShardError


class KeyFinished(ShardError, code="key-finished", fault="caller"):
    """An event arrived for a key that an input of a join had finished."""


class KeyNotWhole(ShardError, code="key-not-whole", fault="caller"):
    """The key of an event is not a whole number, but the join finishes keys by their order."""


class ResultLimitReached(ShardError, code="result-limit", fault="caller"):
    """An event led to more results of a join at once than the limit. Results beyond the limit are not emitted."""


class RetractionLate(ShardError, code="retraction-late", fault="caller"):
    """A retraction arrived for an event that a join has never held or no longer holds."""


class JoinSuspended(OperatorSuspended, code="join-suspended"):
    """A join was suspended. It met an event of a finished key (``late: fail``), or had too many results or rows."""


JOIN_LETTERS: tuple[type[ShardError], ...] = (KeyFinished, KeyNotWhole, ResultLimitReached, RetractionLate)
