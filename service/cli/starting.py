"""How ``forestall`` starts; imports nothing before it is called."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module


def main() -> None:
    """Entry point.

    The garbage collector is off while modules are imported: they make some hundred thousand objects, all of which stay,
    and scanning them repeatedly took a fifth of the start. Objects that exist when the command begins are never scanned
    again; those of the command are collected as usual, but not at the end of the process, which returns its memory at
    once.

    Numpy starts threads for products of matrices, which takes half of its import. ``match`` does without: it only
    multiplies the matrices of a model's tasks.
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
