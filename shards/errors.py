"""Errors of shards; most of them are the reason of a dead letter.

ShardError
├── EntryQuarantined       an entry broke the matcher and was set aside
├── OperatorRefused        a document does not describe an operator that can run
├── EventLate              an event came later than its stream allows
├── NotDerivable           a match cannot become an event of a derived stream
├── KeyFinished            an event came of a key that an input of a join had finished
├── MatchLimitReached      more matches were completed at once than are emitted
├── RunLimitReached        a trace has more partial matches of a pattern than are kept
├── WorkLimitReached       a trace costs a pattern more work than is allowed
└── SavedStateError        saved state of a shard is damaged or of an unknown version
"""

from __future__ import annotations

from typing import ClassVar

from streams import Fault, ForestallError


class ShardError(ForestallError):
    """Something is wrong with what a shard was given, or with its state."""

    code: ClassVar[str] = "shard"


class EntryQuarantined(ShardError):
    """An entry broke the matcher and was set aside; it stays in the log."""

    code: ClassVar[str] = "quarantined"


class OperatorRefused(ShardError):
    """A document does not describe an operator of its kind, or one that cannot run on its streams."""

    code: ClassVar[str] = "operator-refused"
    fault: ClassVar[Fault] = "caller"


class EventLate(ShardError):
    """An event came later than its stream allows."""

    code: ClassVar[str] = "late-event"
    fault: ClassVar[Fault] = "caller"


class NotDerivable(ShardError):
    """A match cannot become an event of a derived stream: it has no key there, or no time that can be written."""

    code: ClassVar[str] = "not-derivable"
    fault: ClassVar[Fault] = "caller"


class KeyFinished(ShardError):
    """An event came of a key of which an input of a join had said that no more events come."""

    code: ClassVar[str] = "key-finished"
    fault: ClassVar[Fault] = "caller"


class MatchLimitReached(ShardError):
    """More matches of a pattern were completed at once than are emitted; the rest is counted in a dead letter."""

    code: ClassVar[str] = "match-limit"
    fault: ClassVar[Fault] = "caller"


class RunLimitReached(ShardError):
    """A trace has more partial matches of a pattern than are kept; matches may be missing."""

    code: ClassVar[str] = "run-limit"
    fault: ClassVar[Fault] = "caller"


class WorkLimitReached(ShardError):
    """The events of a trace met more partial matches of a pattern than they may: it is given up in that trace."""

    code: ClassVar[str] = "work-limit"
    fault: ClassVar[Fault] = "caller"


class SavedStateError(ShardError):
    """Saved state of a shard is damaged or of a version that this release does not know."""

    code: ClassVar[str] = "saved-state"
