"""Compiles the kernels that exercises need: ``python -m streams.compiling PARENT MODULE:FUNCTION ...``.

The process exits when PARENT, the process that started it, has ended.
"""

from __future__ import annotations

import os
import sys

from streams.compiling.work import compile_here

if __name__ == "__main__":
    _parent = int(sys.argv[1])
    compile_here(sys.argv[2:], lambda: os.getppid() == _parent)
