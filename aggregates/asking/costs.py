"""Costs of a configuration of the index, and the bound on the saving from indexing an attribute.

A configuration gives each attribute a number of address bits. A *pattern* is the set of attributes that a question
fixes, as bits. Source: the specification of parameterised group-by, sections 4 and 4.3 with corrections.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 2**21  # largest table of configurations and patterns that is computed at once


@dataclass(frozen=True)
class Workload:
    """The number of inserted events and of questions in a unit of time, by which configurations are compared.

    Attributes:
        attributes: Number of attributes that can be indexed.
        events: Number of inserted events.
        patterns: The distinct patterns of questions. Each is the set of attributes that a question fixes, as bits.
        requests: Number of questions by pattern.
        rows: Mean number of events in the window of a question, by pattern.
    """

    attributes: int
    events: float
    patterns: NDArray[np.int64]
    requests: NDArray[np.float64]
    rows: NDArray[np.float64]

    @cached_property
    def uses(self) -> NDArray[np.float64]:
        """A matrix (patterns, attributes): 1 where a question of the pattern fixes the attribute, otherwise 0."""
        return ((self.patterns[:, None] >> np.arange(self.attributes)) & 1).astype(np.float64)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The weight of each pattern: its number of questions times the mean number of events in their windows."""
        return self.requests * self.rows


@dataclass(frozen=True, slots=True)
class CostModel:
    """The cost of each operation of the question index. All costs have the same unit.

    Attributes:
        hashing: Computing one attribute's bits of an address.
        comparing: Comparing one event of a visited partition, if the window fits into the processor's cache.
        visiting: Visiting one partition. If this is 0, only configurations that use all bits are compared.
        scanning: Comparing one event in a scan, which replaces a more expensive probe. If infinite, nothing is scanned.
        moving: Moving one event to another configuration, besides hashing.
        waiting: What a comparison costs in addition to ``comparing``, if the window does not fit into the cache.
        cached: The most events of a window that fit into the cache.
    """

    hashing: float
    comparing: float
    visiting: float = 0.0
    scanning: float = np.inf
    moving: float = 0.0
    waiting: float = 0.0
    cached: float = np.inf

    def stepping(self, rows: Any) -> Any:
        """Return the cost of comparing one event of a visited partition, in a window of ``rows`` events.

        The cost is higher if the window exceeds the cache.
        """
        return self.comparing + (rows > self.cached) * self.waiting

    def probing(self, rows: Any, fixed: Any, free: Any) -> Any:
        """Return the cost of finding a question's events by a probe of the index, in a window of ``rows`` events.

        The question determines ``fixed`` bits of the address. The probe visits all partitions that differ in the other
        ``free`` bits.
        """
        return rows * 0.5**fixed * self.stepping(rows) + 2.0**free * self.visiting

    def costs(self, configurations: NDArray[np.int8], workload: Workload) -> NDArray[np.float64]:
        """Return the cost of each configuration (row) in a unit of time."""
        step = max(1, _BLOCK // max(1, len(workload.patterns)))
        parts = [
            self._costs(configurations[begin : begin + step].astype(np.float64), workload)
            for begin in range(0, len(configurations), step)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _costs(self, bits: NDArray[np.float64], workload: Workload) -> NDArray[np.float64]:
        uses, is_indexed = workload.uses, (bits > 0).astype(np.float64)
        fixed = bits @ uses.T
        probing = self.probing(workload.rows, fixed, bits.sum(axis=1)[:, None] - fixed)
        each = np.minimum(probing, workload.rows * self.scanning) + is_indexed @ uses.T * self.hashing
        inserting = workload.events * is_indexed.sum(axis=1) * self.hashing
        total: NDArray[np.float64] = inserting + each @ workload.requests
        return total

    def benefits(self, workload: Workload, caps: NDArray[np.int64], bits: int) -> NDArray[np.float64]:
        """Return for each attribute an upper bound of the cost that indexing it saves in a unit of time.

        An attribute has at most ``caps`` bits, and all have at most ``bits``. If the bound of an attribute is 0 or
        less, it need not be indexed.
        """
        saved = 1.0 - np.exp2(-np.minimum(caps, bits).astype(np.float64))[:, None]
        most = np.minimum(workload.rows * self.stepping(workload.rows) * saved, workload.rows * self.scanning)
        used = workload.uses.T
        spent = (workload.events + used @ workload.requests) * self.hashing
        benefits: NDArray[np.float64] = (used * most) @ workload.requests - spent
        return benefits


MEASURED = CostModel(hashing=3.0, comparing=3.5, visiting=6.0, scanning=1.05, moving=20.0, waiting=3.0, cached=2**18)
"""Nanoseconds on one core of a server, as measured for ``literature/RESULTS.md``; only their ratios matter."""
