"""Drivers that run in a peer's own process: one case, one line of JSON as result.

Drivers in Python run in the peer's environment; beside its package they use the standard library and orjson.
"""
