"""Joins, without windows, of streams that are late, lag behind one another and are out of order.

Keys are 64-bit integers that rise roughly: sequence numbers, epochs, times. How far each input is out of order is
measured as it arrives, or known (its *scrambling factor*). From the factor follows a *closing key*, up to which no
arrival of the input is expected any more; the closing keys of the other inputs decide what a buffer can forget.

Promises: with true factors every combination is found, once, at its last arrival, in bounded memory; with monitored or
too small factors no combination is wrong or emitted twice, and arrivals that came too late are counted; neither cuts
of arrivals into batches, nor saving and loading in between, change results. Arrivals are identified by sequence
numbers; the caller keeps their payloads, for as long as ``held_sequences`` names them.

Where memory is short, arrivals wait in the order of their keys (*memory-sort first*), on disk while nothing can match
them (*disk-buffer first*), or both (*hybrid*); ``choose`` picks one for a budget, or refuses and names the figures.
Arrivals on disk are keys and sequence numbers: this package writes no payloads.

When keys begin again (beyond a declared bound of disorder), all buffers are emptied: combinations across that moment
are lost, and the dropped arrivals are counted.

Source: data-driven memory management for stream joins (window-oblivious joins, WO-Join).
"""

from literature.unsynchronised.arrivals import Arrivals, Combinations, integer_keys, items_of
from literature.unsynchronised.buffers import BufferOfInput, BufferOptions, BufferStats, JoinBuffers
from literature.unsynchronised.choice import Budget, Choice, choose
from literature.unsynchronised.disk_buffers import DiskBuffers, SpillOptions
from literature.unsynchronised.lags import LagMonitor
from literature.unsynchronised.memory_model import (
    STRATEGIES,
    InputEstimate,
    Slots,
    Strategy,
    predicted_slots,
    slots_by_form,
    whole_sizes,
)
from literature.unsynchronised.monitors import Disorder, DisorderMonitor, DisorderOptions, rate_at, scrambling_factor
from literature.unsynchronised.oblivious import ObliviousJoin, ObliviousStats
from literature.unsynchronised.partitions import divided, part_of
from literature.unsynchronised.plans import (
    OtherKey,
    PlannedJoin,
    dependent_factor,
    derived,
    joined_estimate,
    scaled_dependent_factor,
)
from literature.unsynchronised.sorting import SortBuffers

__all__ = [
    "STRATEGIES",
    "Arrivals",
    "Budget",
    "BufferOfInput",
    "BufferOptions",
    "BufferStats",
    "Choice",
    "Combinations",
    "DiskBuffers",
    "Disorder",
    "DisorderMonitor",
    "DisorderOptions",
    "InputEstimate",
    "JoinBuffers",
    "LagMonitor",
    "ObliviousJoin",
    "ObliviousStats",
    "OtherKey",
    "PlannedJoin",
    "Slots",
    "SortBuffers",
    "SpillOptions",
    "Strategy",
    "choose",
    "dependent_factor",
    "derived",
    "divided",
    "integer_keys",
    "items_of",
    "joined_estimate",
    "part_of",
    "predicted_slots",
    "rate_at",
    "scaled_dependent_factor",
    "scrambling_factor",
    "slots_by_form",
    "whole_sizes",
]
