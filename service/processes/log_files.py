"""Rotation of the processes' log files."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

_FORMER = 2


def rotate(log_file: Path, most_bytes: int) -> bool:
    """Rotate a log file that is too large; the two before are kept beside it as ``NAME.log.1``, ``NAME.log.2``.

    The process that writes the file keeps it open for appending, so it is copied and then cut; lines written in between
    are lost. If the copy fails for lack of space, the file is cut all the same. Returns whether it was rotated.
    """
    with suppress(OSError):
        if log_file.stat().st_size <= most_bytes:
            return False
        former = [log_file.with_name(f"{log_file.name}.{number}") for number in range(1, _FORMER + 1)]
        with suppress(OSError):
            for older, newer in zip(reversed(former), reversed(former[:-1]), strict=False):
                if newer.exists():
                    newer.replace(older)
            shutil.copyfile(log_file, former[0])
        os.truncate(log_file, 0)
        return True
    return False
