"""How ``forestall`` starts and ends; imports nothing of the program before it is called."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder

_UNUSED = ("pandas", "coverage")
"""What Arrow and numba import where it is installed, to ask whether a value or a run is one of theirs: 0.4 s."""


def main() -> None:
    """Entry point.

    The garbage collector is off while modules are imported: they make some hundred thousand objects, all of which stay,
    and scanning them repeatedly took a fifth of the start. Objects that exist when the command begins are never scanned
    again; those of the command are collected as usual.

    Numpy starts threads for products of matrices, which takes half of its import. ``match`` does without: it only
    multiplies the matrices of a model's tasks. It reads files only, so it does without ``_UNUSED`` as well.
    """
    end = _QuickEnd()
    atexit.register(end)  # registered first, so it runs last
    if sys.argv[1:2] == ["match"]:
        # house: allow environment: numpy's own variable, which is read while it is imported
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        sys.meta_path.insert(0, _Absent())
    gc.disable()
    commands = import_module("service.cli.app")
    app = commands.called_app()
    gc.freeze()
    gc.enable()
    try:
        commands.run(app)
    except SystemExit as ending:
        end.status = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        raise


class _Absent(MetaPathFinder):
    """Lets ``_UNUSED`` appear as not installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname in _UNUSED:
            raise ModuleNotFoundError(f"{fullname} is not imported by this command", name=fullname)


class _QuickEnd:
    """Ends the process without freeing each object; freeing takes a tenth of the time of a short command."""

    def __init__(self) -> None:
        self.status: int | None = None
        self._process = os.getpid()

    def __call__(self) -> None:
        """Leave, unless this is a fork, or an error ends the command, or output is lost: the interpreter reports it."""
        if self.status is None or os.getpid() != self._process:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            return
        os._exit(self.status)
