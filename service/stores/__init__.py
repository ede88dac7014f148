"""The service's data in Redis; in ``service``, only this package imports ``redis``.

Each store is given a client. Every change of more than one key is one atomic Lua script, and every script may run
twice without harm, as a client sends a command again if the reply was lost. The scripts are the files
``scripts/<folder>/<name>.lua``; the header of each names its keys and arguments (``streams.log.scripts``).
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
