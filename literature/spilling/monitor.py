"""The thresholds of a spilling join, and the counts that are compared with them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from joins.errors import JoinRefused

UNLIMITED = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Thresholds that can be changed while a join runs; a change takes effect at the next item.

    Attributes:
        purge_punctuations: New punctuations of both inputs after which the state is purged; 1: eagerly.
        memory_events: Events in memory, including purge buffers, at which some are written to disk.
        propagate_punctuations: New punctuations of both inputs after which punctuations may be propagated.
        propagate_us: Event time after which punctuations may be propagated; ``UNLIMITED``: no such time.
        activation_events: Events of a bucket on disk, not covered by a disk join, at which an idle join covers it.
        activation_us: Idle time after which a join also covers buckets with fewer events.
        block_events: Greatest number of events of a block on disk; small blocks have narrow fences.
        scope_events: Least number of events left in the scope of a hint that counts, where the scope counts events.
    """

    purge_punctuations: int = 1
    memory_events: int = UNLIMITED
    propagate_punctuations: int = 1
    propagate_us: int = UNLIMITED
    activation_events: int = 1000
    activation_us: int = 200_000
    block_events: int = 128
    scope_events: int = 1

    def __post_init__(self) -> None:
        for threshold in fields(self):
            if getattr(self, threshold.name) < 1:
                raise JoinRefused(f"the threshold {threshold.name} is at least 1, not {getattr(self, threshold.name)}")


@dataclass(slots=True)
class Monitor:
    """Counts since a component last ran; all are part of the saved state.

    Attributes:
        since_purge: Punctuations since the state was purged.
        since_propagation: Punctuations since they were propagated.
        propagated_us: Event time of the last propagation, or of the first item.
        zeroed: Punctuations whose count had become zero when ``on-zero`` ran last.
        live: Events in memory right after the last purge.
    """

    since_purge: int = 0
    since_propagation: int = 0
    propagated_us: int = -UNLIMITED
    zeroed: int = 0
    live: int = 0
