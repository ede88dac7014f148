"""Shards: the meaning of log entries, without Spark, Redis or a web framework.

Purpose: the state of one shard as a pure function of its entries, the rows that leave a shard, and runs of many shards
in this process. Promises: the id of a row depends only on its content; cutting the entries differently, or saving and
loading the state in between, changes no row; a bad entry becomes a dead letter and never stops a shard.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
