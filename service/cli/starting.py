"""Start and end of ``forestall``. This module imports nothing else of the program until ``main`` is called."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder

_UNUSED = ("pandas", "coverage")
"""Packages that Arrow and numba import only to detect pandas values or a coverage run. Importing them takes 0.4 s."""


def main() -> None:
    """Run the command ``forestall``.

    The garbage collector is off during imports. Imports create some hundred thousand objects that are never freed, and
    scanning these repeatedly took a fifth of the start-up time. Objects that exist when the command begins are never
    scanned. Objects of the command are collected as usual.

    The import of numpy starts threads for matrix products. ``match`` needs only one thread, because its matrices are
    small. It does not import the packages in ``_UNUSED``, because it reads only files.
    """
    end = _QuickEnd()
    atexit.register(end)  # registered first, because exit handlers run in reverse order
    if sys.argv[1:2] == ["match"]:
        # house: allow environment: this is numpy's variable, read by its import
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
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname in _UNUSED:
            raise ModuleNotFoundError(f"{fullname} is not imported by this command", name=fullname)


class _QuickEnd:
    """Ends the process without freeing each object, which would take a tenth of a short command's time."""

    def __init__(self) -> None:
        self.status: int | None = None
        self._process = os.getpid()

    def __call__(self) -> None:
        if self.status is None or os.getpid() != self._process:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            return
        os._exit(self.status)
