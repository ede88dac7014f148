"""Log files of processes do not grow for ever."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

_FORMER = 2


def rotate(log_file: Path, most_bytes: int) -> bool:
    """Begin a log file anew if it is too large; the two before stay beside it, as ``NAME.log.1`` and ``NAME.log.2``.

    The process that writes it keeps it open to append, so the file is copied and then cut; lines that come in between
    are lost. Where there is no room for the copy, the file is cut all the same.

    Returns:
        Whether it was.
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
