"""Shards: the meaning of log entries, without Spark, Redis or a web framework.

Purpose: this package computes the state of a shard as a pure function of its entries, makes the rows that leave a
shard, and runs several shards in one process.

Promises: the id of a row depends only on the row's content. The rows are the same if the log is cut into other entries,
or if the state is saved and loaded in between. An invalid entry becomes a dead letter and never stops a shard.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
