"""Shards: what the entries of a log mean, without Spark, Redis or a web framework.

Purpose: the state of one shard as a pure function of its entries, the rows that leave it, and runs of many shards in
this process. Promises: every row has an id that depends on what it says only; cutting the entries otherwise, and saving
and loading the state in between, change no row; a bad entry becomes a dead letter and never stops a shard.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
