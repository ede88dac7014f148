"""The continuous runtime: a Spark job of long-running tasks that own shards by lease, and an indexer of their results.

Purpose: emit results milliseconds after their events, without micro-batches. ``query`` runs the job and watches its
tasks, and ``task`` implements a task. ``leases`` assigns shards to tasks. ``blocks`` writes the results of a step
together with the shard's new position and its derived events (``derived``). ``questions`` answers questions, and
``indexer`` passes the results on to the sink. ADR 63 shows why each result is written once.
"""
