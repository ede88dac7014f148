"""Errors of shards; most of them are reasons of dead letters.

ShardError
├── EntryQuarantined       an entry broke the matcher and was set aside
├── OperatorRefused        a document does not describe an operator that can run
├── EventLate              an event came later than its stream allows
├── NotDerivable           a match cannot become an event of a derived stream
├── KeyFinished            an event has a key that an input of a join had finished
├── RetractionLate         a retraction names an event that a join does not know any more
├── ResultLimitReached     an event led to more results of a join than are emitted
├── KeyNotWhole            a key is not a whole number, in a join that waits by the order of keys
├── MatchLimitReached      more matches were completed at once than are emitted
├── RunLimitReached        a trace has more partial matches of a pattern than are kept
├── WorkLimitReached       a trace costs a pattern more work than is allowed
├── RoundsImpossible       several sets of rules cannot be run side by side
└── SavedStateError        saved state of a shard is damaged or of an unknown version
"""

from __future__ import annotations

from streams import ForestallError


class ShardError(ForestallError, code="shard"):
    """A shard's input or its state is invalid."""


class EntryQuarantined(ShardError, code="quarantined"):
    """An entry broke the matcher and was set aside; it stays in the log."""


class OperatorRefused(ShardError, code="operator-refused", fault="caller"):
    """A document does not describe an operator of its kind, or the operator cannot run on its streams."""


class EventLate(ShardError, code="late-event", fault="caller"):
    """An event came later than its stream allows."""


class NotDerivable(ShardError, code="not-derivable", fault="caller"):
    """A match cannot become an event of a derived stream: its key or its time is not valid there."""


class KeyFinished(ShardError, code="key-finished", fault="caller"):
    """An event came for a key that an input of a join had finished."""


class RetractionLate(ShardError, code="retraction-late", fault="caller"):
    """A retraction came for an event that a join does not know, or no longer knows."""


class ResultLimitReached(ShardError, code="result-limit", fault="caller"):
    """An event led to more results of a join at once than are emitted; the others are missing."""


class KeyNotWhole(ShardError, code="key-not-whole", fault="caller"):
    """An event's key is not a whole number, in a join that waits for keys by their order."""


class MatchLimitReached(ShardError, code="match-limit", fault="caller"):
    """More matches of a pattern were completed at once than are emitted; the others are counted in a dead letter."""


class RunLimitReached(ShardError, code="run-limit", fault="caller"):
    """A trace has more partial matches of a pattern than are kept; matches may be missing."""


class WorkLimitReached(ShardError, code="work-limit", fault="caller"):
    """The events of a trace met more partial matches of a pattern than allowed: it is given up in that trace."""


class RoundsImpossible(ShardError, code="rounds-impossible", fault="caller"):
    """Several sets of rules cannot be run side by side, because no order of their streams suits all of them."""


class SavedStateError(ShardError, code="saved-state"):
    """Saved state of a shard is damaged or of a version that this release does not know."""
