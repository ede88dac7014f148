"""Rules, results and counts of a spilling join."""

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
    """The declared rules of a spilling join; unlike thresholds, they cannot be changed.

    Attributes:
        buckets: Number of buckets of each input, a power of two.
        purge: ``indexed``: closings of single keys purge the buckets of the keys. ``scan``: every bucket is scanned.
        placement: ``scattered``: buckets are chosen by a hash of the key. ``modulo``: by the low bits of the key.
        uses_punctuations: False: XJoin; punctuations only advance the time.
        carries_payloads: Whether events carry bytes, which are stored with them and returned with results.
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
    """A propagated punctuation: no more results of its keys come.

    Attributes:
        item: Place of the item that led to the propagation; -1 outside of a batch.
        time_us: Time of the propagation.
        pattern: The keys; a range is whole, even if single keys of it were propagated before.
        cause: ``REGULAR``: both inputs closed the keys; ``IMMEDIATE``: one did, and no event of it is left.
    """

    item: int
    time_us: int
    pattern: Pattern
    cause: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class SpilledColumns:
    """Results of some items.

    Attributes:
        members: int64 (results, 2): sequence numbers of each pair; they count the events of both inputs from 0.
        result_times_us: int64: time of the later member of each pair.
        result_items: int32: place of the item that led to each pair; -1 outside of a batch.
        violations: int32: places of events of keys that their own input had closed; they joined nothing.
        propagated: Propagated punctuations.
        payloads: Payloads of both members of each pair; None where the join has no payloads.
    """

    members: NDArray[np.int64]
    result_times_us: NDArray[np.int64]
    result_items: NDArray[np.int32]
    violations: NDArray[np.int32]
    propagated: list[Propagated]
    payloads: tuple[pa.BinaryArray, pa.BinaryArray] | None


@dataclass(slots=True, kw_only=True)
class SpillingStats:
    """Counts since the join began; some are current, as marked.

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
        """All counts, including those of kernels and of the index."""
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
