"""Joins with ``wait: auto``: how far keys of inputs are out of order over all shards, and which keys are finished."""
