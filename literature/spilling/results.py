"""What a join that spills is declared to do, what it finds, and what it counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.items import Cause
from literature.kernels import buckets as kernel
from literature.punctuations import Pattern
from literature.spilling.memory import BucketMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillingRules:
    """What a join that spills was declared to do; unlike thresholds it stays as it is.

    Attributes:
        buckets: Of each input, a power of two.
        purge: ``indexed``: a closing of single keys goes to their buckets. ``scan``: it compares the whole memory part.
        placement: ``scattered``: buckets are chosen by a hash of the key. ``modulo``: by its low bits.
        uses_punctuations: False: XJoin; punctuations only let time advance.
        carries_payloads: Whether events carry bytes, which go to disk with them and come back with results.
    """

    buckets: int = 64
    purge: Literal["indexed", "scan"] = "indexed"
    placement: Literal["scattered", "modulo"] = "scattered"
    uses_punctuations: bool = True
    carries_payloads: bool = False

    def __post_init__(self) -> None:
        if self.buckets < 1 or self.buckets & (self.buckets - 1):
            raise ValueError(f"the number of buckets is a power of two, not {self.buckets}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Propagated:
    """Keys of which no result comes any more.

    Attributes:
        item: The item that led to it, as its place among the items; -1 outside of a batch.
        time_us: When it was known.
        pattern: The keys; a range is given whole, even if single keys of it were given before.
        cause: ``REGULAR``: both inputs closed them; ``IMMEDIATE``: one did, and no event of it is left.
    """

    item: int
    time_us: int
    pattern: Pattern
    cause: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class SpilledColumns:
    """What some items led to.

    Attributes:
        members: int64 (results, 2): sequence numbers of a pair, which count the events of both inputs from 0.
        result_times_us: int64: the time of the later member.
        result_items: int32: the item that led to it; -1 outside of a batch.
        violations: int32: items that are events of keys that their own input had closed. They joined nothing.
        propagated: Keys of which no result comes any more.
        payloads: What both members of each pair carry; None where the join has no payloads.
    """

    members: NDArray[np.int64]
    result_times_us: NDArray[np.int64]
    result_items: NDArray[np.int32]
    violations: NDArray[np.int32]
    propagated: list[Propagated]
    payloads: tuple[pa.BinaryArray, pa.BinaryArray] | None


@dataclass(slots=True, kw_only=True)
class SpillingStats:
    """Counts since the join began; those marked are current.

    Attributes:
        events: Events taken in, those without a key included.
        in_memory: Events in memory (current).
        on_disk: Events on disk (current).
        comparisons: Keys compared while probing.
        scans: Events that purges compared.
        index_comparisons: Keys that were compared for the index.
        memory_results: Pairs that were in memory together.
        disk_results: Pairs of disk joins.
        on_the_fly: Events that were probed and not stored.
        buffered: Events that went to a purge buffer.
        purged: Stored events that a closed key made useless.
        violations: Events of keys that their own input had closed.
        nulls: Events without a key.
        duplicates: Punctuations whose keys the input had closed.
        empty: Punctuations without values.
        wildcards: Punctuations that finish an input.
        punctuations: Punctuations that closed keys.
        propagated: Punctuations reported.
        propagations: Runs of the propagation.
        purges: Runs of the state purge.
        relocations: Buckets written to disk.
        disk_joins: Buckets that were covered.
    """

    events: int = 0
    in_memory: int = 0
    on_disk: int = 0
    comparisons: int = 0
    scans: int = 0
    index_comparisons: int = 0
    memory_results: int = 0
    disk_results: int = 0
    on_the_fly: int = 0
    buffered: int = 0
    purged: int = 0
    violations: int = 0
    nulls: int = 0
    duplicates: int = 0
    empty: int = 0
    wildcards: int = 0
    punctuations: int = 0
    propagated: int = 0
    propagations: int = 0
    purges: int = 0
    relocations: int = 0
    disk_joins: int = 0

    @classmethod
    def of(cls, counted: SpillingStats, memory: BucketMemory, index_comparisons: int) -> SpillingStats:
        """All counts, those of kernels and of the index included."""
        counts = asdict(counted) | {name: memory.counter(place) for name, place in _COUNTED_BY_KERNELS.items()}
        counts |= {"on_disk": int(memory.state.on_disk.sum()), "index_comparisons": index_comparisons}
        return cls(**counts)


_COUNTED_BY_KERNELS = {
    "events": kernel.SEQUENCE,
    "in_memory": kernel.IN_MEMORY,
    "comparisons": kernel.COMPARISONS,
    "scans": kernel.SCANS,
    "memory_results": kernel.RESULTS,
    "on_the_fly": kernel.ON_THE_FLY,
    "buffered": kernel.BUFFERED,
    "purged": kernel.PURGED,
    "violations": kernel.VIOLATIONS,
    "nulls": kernel.NULLS,
}
