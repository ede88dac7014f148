"""A log as arrays of type codes, in which equal traces are merged, and the positions of types in each trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

ABSENT_FIRST = np.iinfo(np.int32).max
ABSENT_LAST = -1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class EncodedLog:
    """The distinct traces of a log (variants) with their frequencies, as arrays of codes.

    A code is an index into the sorted event types (``events``).

    Attributes:
        weights: (variants,) int64, the number of traces of each variant.
        codes: (events,) int32, the events of all variants, one variant after the other.
        starts: (variants + 1,) int64, the index in ``codes`` at which each variant begins.
    """

    types: tuple[str, ...]
    weights: Counts
    codes: NDArray[np.int32]
    starts: Counts

    @classmethod
    def of(cls, traces: Iterable[Sequence[str]]) -> EncodedLog:
        variants = Counter(map(tuple, traces))
        types = tuple(sorted({name for variant in variants for name in variant}))
        code_of = {name: code for code, name in enumerate(types)}
        lengths = np.fromiter(map(len, variants), np.int64, len(variants))
        return cls(
            types=types,
            weights=np.fromiter(variants.values(), np.int64, len(variants)),
            codes=np.fromiter((code_of[name] for variant in variants for name in variant), np.int32, lengths.sum()),
            starts=np.concatenate(([0], np.cumsum(lengths))),
        )

    def __len__(self) -> int:
        """Return the number of variants."""
        return len(self.weights)

    @property
    def traces(self) -> int:
        return int(self.weights.sum())

    @property
    def events(self) -> int:
        return int((self.lengths * self.weights).sum())

    @property
    def lengths(self) -> Counts:
        """The number of events of each variant, (variants,)."""
        return np.diff(self.starts)

    def blocks(self, max_cells: int) -> Iterable[EncodedLog]:
        """Yield the log in blocks of variants, so that a table (variants, types) of a block needs bounded memory.

        Such a table has at most ``max_cells`` cells, unless a single variant needs more.
        """
        rows = max(1, max_cells // max(1, len(self.types)))
        for first in range(0, len(self), rows):
            last = min(first + rows, len(self))
            begin, end = self.starts[first], self.starts[last]
            yield EncodedLog(
                types=self.types,
                weights=self.weights[first:last],
                codes=self.codes[begin:end],
                starts=self.starts[first : last + 1] - begin,
            )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Occurrences:
    """The occurrences of event types in the variants of a log, as arrays (variants, types).

    Attributes:
        counts: Number of events of a type in a variant.
        first: Index of a type's first event in a variant, or ``ABSENT_FIRST``.
        last: Index of a type's last event in a variant, or ``ABSENT_LAST``.
        variant: (events,), the variant of each event.
        place: (events,), the index of each event in its variant.
    """

    counts: NDArray[np.int32]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    variant: Counts
    place: Counts

    @classmethod
    def of(cls, log: EncodedLog) -> Occurrences:
        shape = len(log), len(log.types)
        variant = np.repeat(np.arange(len(log)), log.lengths)
        place = np.arange(len(log.codes)) - log.starts[variant]
        counts = np.bincount(variant * shape[1] + log.codes, minlength=shape[0] * shape[1]).reshape(shape)
        first, last = np.full(shape, ABSENT_FIRST, np.int32), np.full(shape, ABSENT_LAST, np.int32)
        np.minimum.at(first, (variant, log.codes), place.astype(np.int32))
        np.maximum.at(last, (variant, log.codes), place.astype(np.int32))
        return cls(counts=counts.astype(np.int32), first=first, last=last, variant=variant, place=place)
