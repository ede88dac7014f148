"""Joins of streams that are late, lag behind one another and are out of order, without a window to guess.

Keys rise roughly (sequence numbers, epochs, times). How far each input is out of order is measured as it arrives (its
*scrambling factor*); from that follows a *closing key*, up to which nothing more comes on the input.

Source: data-driven memory management for stream joins (window-oblivious joins).
"""

from joins.unsynchronised.monitors import Disorder, DisorderMonitor, DisorderOptions, rate_at, scrambling_factor

__all__ = [
    "Disorder",
    "DisorderMonitor",
    "DisorderOptions",
    "rate_at",
    "scrambling_factor",
]
