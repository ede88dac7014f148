"""The stores, which keep the service's data in Redis. In ``service``, only this package imports ``redis``.

A change of several keys is one atomic Lua script. Scripts are idempotent, because the Redis client repeats a command
whose reply was lost. A script is a file ``scripts/<folder>/<name>.lua``, whose header names its keys and arguments
(``streams.log.scripts``).
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
