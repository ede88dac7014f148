"""The worker as a process: ``python -m service.backtests``."""

from __future__ import annotations

import sys

from service.backtests.worker import work
from service.process import run_process

if __name__ == "__main__":
    sys.exit(run_process("backtests", work))
