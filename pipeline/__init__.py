"""The Spark job: from the event log to alerts, exactly once.

Purpose: the event log as a Spark source, the streaming query that advances the states of shards, and where those are
kept. Promises: after a crash at any point the rows are the same. What an entry means is said by ``shards``. Nothing
here knows who writes the log or who keeps the rows.

Names are loaded where they are first asked for: Spark starts several processes for each query only to import its
source, and need not import the engine for it.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
