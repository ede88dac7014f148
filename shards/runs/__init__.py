"""Runs over finite events in shards: rules cut into rounds, one shard of a round, and the comparison of several sets of
rules.
"""
