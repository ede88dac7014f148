"""What the service keeps in Redis; the only importer of ``redis`` in ``service``.

Each store is handed a client. Every change of more than one key is one atomic Lua script, and every script may run
twice without harm, as a client sends a command again when its answer was lost on the way. The scripts are the files
``scripts/<room>/<name>.lua``; the header of each names its keys and arguments (``streams.log.scripts``).
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
