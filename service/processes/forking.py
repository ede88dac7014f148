"""The code that a forked process of the service runs first."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from multiprocessing import forkserver
from pathlib import Path

_NAME = Path("/proc/self/comm")
_OUTPUTS = 1, 2


def run_child(module: str, log_file: Path, environment: Mapping[str, str]) -> None:
    """Run the ``main`` of a module in this forked process, with its own environment and with its output in a log file.

    ``ps`` shows the process by the name of its log, because its command line is that of the fork server.
    """
    with suppress(OSError):
        _NAME.write_text(f"forestall-{log_file.stem}", encoding="ascii")
    with log_file.open("ab") as log:
        for stream in _OUTPUTS:
            os.dup2(log.fileno(), stream)
    # house: allow environment: a forked process starts with the fork server's environment
    os.environ |= environment
    _share_server()
    sys.exit(import_module(module).main())


def _share_server() -> None:
    """Make this process use the fork server that forked it, because ``multiprocessing`` would start another server."""
    vars(forkserver._forkserver)["ensure_running"] = _nothing_to_start


def _nothing_to_start() -> None:
    """Do nothing, in place of the function of ``multiprocessing`` that starts a fork server.

    The fork server is running, because this process ends with it (``end_with_parent``).
    """
