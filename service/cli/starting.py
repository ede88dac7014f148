"""How ``forestall`` starts; imports nothing before it is called."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module


def main() -> None:
    """Entry point.

    The collector of cyclic garbage rests while modules are imported: they make some hundred thousand objects, all of
    which stay, and looking through them again and again took a fifth of the start. What is there when the command
    begins is never examined again; what the command makes is collected as usual, but not at the end of the process,
    which gives its memory back at once.

    With numpy come threads for products of matrices, and making them takes half of its import. ``match`` does without:
    it multiplies none but those of a model's tasks.
    """
    if sys.argv[1:2] == ["match"]:
        # house: allow environment: numpy's own variable, which is read while it is imported
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()
    commands = import_module("service.cli.app")
    app = commands.called_app()
    gc.freeze()
    gc.enable()
    try:
        commands.run(app)
    finally:
        gc.freeze()
