"""Drivers that run in a peer's own process. A driver runs one case and prints one line of JSON with the result.

Python drivers run in the peer's environment. Besides the peer's package, they use only the standard library and orjson.
"""
