"""The check of compiled kernels: whether they can be kept, and which exist."""

from __future__ import annotations

import os
from pathlib import Path

from service.doctor.findings import Finding, ok, problem, warning
from shards import EXERCISES
from streams import KeptFolderRefused
from streams.compiling import JSON_LINES, kernels_folder, progress_of

EVERYTHING = (*EXERCISES, JSON_LINES)

_SUBJECT = "kernels"
_MIB = 1024**2


def look_at_kernels() -> Finding:
    """Check the folder of compiled kernels: its size, and how many of the needed kernels exist."""
    advice = "name a folder that this user may write: NUMBA_CACHE_DIR"
    try:
        folder = kernels_folder()
        found = progress_of(EVERYTHING)
    except KeptFolderRefused as error:
        return problem(_SUBJECT, error.message.partition("; ")[0], "remove the folder, or " + advice)
    except OSError as error:
        return warning(_SUBJECT, f"compiled kernels cannot be kept: {error}", advice)
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        return warning(_SUBJECT, f"{there} cannot be written: each process compiles its own kernels", advice)
    needed = "" if found.needed is None else f" of {found.needed}"
    rest = "" if found.is_complete else "; the rest is compiled when it is needed, or now by forestall warm-up"
    return ok(_SUBJECT, f"{found.kept}{needed} are compiled, {size_of(folder) / _MIB:.1f} MiB in {folder}{rest}")


def size_of(folder: Path) -> int:
    """Bytes of the files of a folder; 0 if it does not exist."""
    try:
        return sum(file.stat().st_size for file in folder.iterdir())
    except FileNotFoundError:
        return 0
