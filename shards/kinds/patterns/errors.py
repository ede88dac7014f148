"""Errors of patterns: reasons of dead letters.

ShardError
├── MatchLimitReached   more matches were completed at once than are emitted
├── NotDerivable        a match cannot become an event of a derived stream
├── RunLimitReached     a trace has more partial matches than are kept
└── WorkLimitReached    a trace costs more work than is allowed
"""

from __future__ import annotations

from shards.errors import ShardError


class MatchLimitReached(ShardError, code="match-limit", fault="caller"):
    """More matches of a pattern were completed at once than the limit. A dead letter counts the matches beyond it."""


class NotDerivable(ShardError, code="not-derivable", fault="caller"):
    """A match cannot become an event of a derived stream, because its key or its time is invalid there."""


class RunLimitReached(ShardError, code="run-limit", fault="caller"):
    """A trace has more partial matches of a pattern than are retained, so matches may be missing."""


class WorkLimitReached(ShardError, code="work-limit", fault="caller"):
    """The events of a trace met more partial matches of a pattern than allowed. The pattern is given up there."""
