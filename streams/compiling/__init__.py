"""Ahead-of-time compilation of kernels by several processes at once, with a cache.

Purpose: an *exercise* calls the kernels that a piece of work needs. ``compile_kernels`` compiles those that are not
cached yet, and reports its progress.

Promises: a cached kernel is not compiled again, and finding it takes a few file accesses. If compilation fails here, a
missing kernel is compiled by the process that calls it.
"""

from streams.compiling.ahead import (
    COMPILING,
    JSON_LINES,
    LOOKUPS,
    CompileProgress,
    compile_kernels,
    compile_missing,
    kernels_folder,
    progress_of,
)
from streams.compiling.running import run_exercise
