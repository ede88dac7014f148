"""How ``forestall`` starts; imports nothing before it is called."""

from __future__ import annotations

import gc
from importlib import import_module


def main() -> None:
    """Entry point.

    The collector of cyclic garbage rests while modules are imported: they make some hundred thousand objects, all of
    which stay, and looking through them again and again took a fifth of the start. What is there when the command
    begins is never looked at again; what the command makes is collected as usual.
    """
    gc.disable()
    commands = import_module("service.cli.app")
    app = commands.called_app()
    gc.freeze()
    gc.enable()
    commands.run(app)
