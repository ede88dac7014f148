"""Kernels are compiled before they are needed, by several processes at once, and kept.

Purpose: an *exercise* stands for the kernels that a piece of work calls; ``compile_kernels`` compiles those that are
not kept yet and reports how far it is. Promises: what is kept is not compiled again and costs some looks at files;
whatever goes wrong here, a kernel that is missing is compiled by the process that calls it.
"""

from streams.compiling.ahead import (
    JSON_LINES,
    Report,
    compile_kernels,
    compile_missing,
    kernels_folder,
    progress_of,
)
from streams.compiling.progress import COMPILING, CompileProgress
from streams.compiling.running import run_exercise

__all__ = [
    "COMPILING",
    "JSON_LINES",
    "CompileProgress",
    "Report",
    "compile_kernels",
    "compile_missing",
    "kernels_folder",
    "progress_of",
    "run_exercise",
]
