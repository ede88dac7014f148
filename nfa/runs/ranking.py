"""Ranking of a trace's complete matches: which are emitted, and in which order (``docs/semantics.md``, emission).

Matches of one detection time are ranked; a kept match rules others out by its pattern's after-match rule. Rules are
about *beginnings*: for a kept match, each defines the first events that a later match may not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from nfa.syntax import After

Rank: TypeAlias = tuple[int, int | str]  # (time, log position), or (time, id) under ties: simultaneous


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A match, or the beginning of one, as ranks of its bound events, by alias in binding order.

    A match decided at the end of the input is emitted after all others. One that ``is_waited`` is decided once no other
    event of its time can come; a deadline decides earlier.
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
        """Sort key of the moment of decision; a LIMIT counts each moment separately."""
        return self.is_at_end, self.detected_us, self.is_waited

    @property
    def events(self) -> list[Rank]:
        return sorted(rank for ranks in self.bindings.values() for rank in ranks)

    @property
    def identity(self) -> frozenset[tuple[str, tuple[Rank, ...]]]:
        """The bindings; matches with equal ones are the same match."""
        return frozenset(self.bindings.items())


def emission_order(match: Ranked) -> tuple[object, ...]:
    """Sort key of alerts."""
    events = match.events
    bindings = sorted((alias, list(ranks)) for alias, ranks in match.bindings.items())
    return *match.decision, match.end_us, match.start_us, events[0], -len(events), events, bindings


def rules_out(after: After, kept: Ranked, other: Ranked, *, is_simultaneous: bool) -> bool:
    """Whether a kept match rules out another, possibly partial match."""
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
