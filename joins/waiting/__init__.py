"""Joins with ``wait: auto``: how far the keys of inputs are out of order over all shards, and which are finished."""
