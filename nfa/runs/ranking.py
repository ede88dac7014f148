"""What is emitted of the complete matches of a trace, and in which order (``docs/semantics.md``, emission).

Matches of one detection time are ranked; a kept one rules others out by its pattern's after-match rule. What is ruled
out are *beginnings*: every rule says of a kept match which first events a later one may not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from nfa.syntax import After

Rank: TypeAlias = tuple[int, int | str]  # (time, log position), or (time, id) under ties: simultaneous


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A match, or the beginning of one, as ranks of its bound events.

    Attributes:
        run: Which run it is.
        bindings: Ranks by alias, in binding order.
        is_at_end: Whether the end of the input decided its last condition: it is emitted after all others.
        is_waited: Whether what decided it is that no other event of its time comes; a deadline decides before it.
        detected_us: When its last condition was decided.
        start_us: Time of its earliest event.
        end_us: Time of its latest.
    """

    run: int
    bindings: Mapping[str, tuple[Rank, ...]]
    is_at_end: bool
    is_waited: bool
    detected_us: int
    start_us: int
    end_us: int

    @property
    def decision(self) -> tuple[bool, int, bool]:
        """When it is decided, as an order; a LIMIT counts each by itself."""
        return self.is_at_end, self.detected_us, self.is_waited

    @property
    def events(self) -> list[Rank]:
        """All bound events in order."""
        return sorted(rank for ranks in self.bindings.values() for rank in ranks)

    @property
    def identity(self) -> frozenset[tuple[str, tuple[Rank, ...]]]:
        """What makes two matches one."""
        return frozenset(self.bindings.items())


def told_order(match: Ranked) -> tuple[object, ...]:
    """Sort key of alerts."""
    events = match.events
    bindings = sorted((alias, list(ranks)) for alias, ranks in match.bindings.items())
    return *match.decision, match.end_us, match.start_us, events[0], -len(events), events, bindings


def rules_out(after: After, kept: Ranked, other: Ranked, *, is_simultaneous: bool) -> bool:
    """Whether a kept match rules out another, which may still be a beginning."""
    first, kept_first = other.events[0], kept.events[0]
    match after.rule:
        case "none":
            return False
        case "once_per_key":
            return True
        case "skip_to_next":
            return first == kept_first
        case "skip_past_last":
            return not _is_before(kept.events[-1], first, is_simultaneous=is_simultaneous)
        case "skip_to_first" | "skip_to_last":
            ranks = kept.bindings.get(after.alias or "", ())
            target = (ranks[0] if after.rule == "skip_to_first" else ranks[-1]) if ranks else kept_first
            if target == kept_first:
                return first == kept_first
            return first != target and not _is_before(target, first, is_simultaneous=is_simultaneous)


def _is_before(one: Rank, other: Rank, *, is_simultaneous: bool) -> bool:
    return one[0] < other[0] if is_simultaneous else one[1] < other[1]  # type: ignore[operator]
