"""The entry point of one process, ``python -m forestall.process NAME``: api, pipeline, deliverer, backtests or console.

``forestall serve`` runs all of them. A container runs one, with the settings of its environment.
"""

from __future__ import annotations

import sys
from importlib import import_module

from service import CHILDREN, CONSOLE


def main() -> int:
    """Run the process that the command line names, and return its exit status. Return 2 for an unknown name."""
    modules = {**CHILDREN, **CONSOLE}
    names = sys.argv[1:]
    if len(names) != 1 or names[0] not in modules:
        sys.stderr.write(f"usage: python -m forestall.process {'|'.join(modules)}\n")
        return 2
    status: int = import_module(modules[names[0]]).main()
    return status


if __name__ == "__main__":
    sys.exit(main())
