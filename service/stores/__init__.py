"""The service's data in Redis; in ``service``, only this package imports ``redis``.

Every change of more than one key is one atomic Lua script. Every script may run twice without harm, because the Redis
client repeats a command whose reply was lost. The scripts are the files ``scripts/<folder>/<name>.lua``; a script's
header names its keys and arguments (``streams.log.scripts``).
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
