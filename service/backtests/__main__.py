"""The process of the backtest worker: ``python -m service.backtests``."""

from __future__ import annotations

import sys

from service.backtests.worker import work
from service.process import run_process


def main() -> int:
    """Run the worker, and return the exit status of ``run_process``."""
    return run_process("backtests", work)


if __name__ == "__main__":
    sys.exit(main())
