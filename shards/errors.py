"""Errors of shards; each kind of operator has further ones in its folder.

ShardError
├── EntryQuarantined       an entry broke the matcher and was set aside
├── OperatorRefused        a document does not describe an operator that can run
├── OperatorSuspended      an operator of a run is suspended
├── EventLate              an event is older than the bound of its stream allows
├── RoundsImpossible       several sets of rules cannot be run side by side
└── SavedStateError        saved state of a shard is damaged or of an unknown version
"""

from __future__ import annotations

from streams import ForestallError


class ShardError(ForestallError, code="shard"):
    """A shard's input or its state is invalid."""


class EntryQuarantined(ShardError, code="quarantined"):
    """An entry broke the matcher, so it is no longer matched; it remains in the log."""


class OperatorRefused(ShardError, code="operator-refused", fault="caller"):
    """A document does not describe an operator of its kind, or the operator cannot run on its streams."""


class OperatorSuspended(ShardError, code="operator-suspended", fault="caller"):
    """An operator of a run was suspended, so results are missing; the message names the cause."""


class EventLate(ShardError, code="late-event", fault="caller"):
    """An event is late: it is older than the bound of out-of-orderness of its stream allows."""


class RoundsImpossible(ShardError, code="rounds-impossible", fault="caller"):
    """Several sets of rules cannot be run side by side.

    Either no order of their streams suits all of them, or their alerts cannot be compared.
    """


class SavedStateError(ShardError, code="saved-state"):
    """Saved state of a shard is damaged or of a version that this release does not know."""
