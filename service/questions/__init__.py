"""Questions to the shards. A question is sent to the tasks of the pipeline or appended to the log.

Shards answer from their states.
"""
