"""The Spark job, which turns the event log into alerts exactly once.

Purpose: the event log as a Spark source, the streaming query that advances the states of shards, and the storage of
these states. Promises: after a crash at any point the rows are the same. ``shards`` defines the meaning of an entry.
This package does not know who writes the log or who stores the rows.

Names are loaded on first use, because Spark starts several processes for each query only to import its source. These
processes need not import the engine.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
