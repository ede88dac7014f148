"""How kernels are compiled: those that Python calls, what only kernels call, and what disappears into its caller.

Only a ``kernel`` is kept on disk, with everything that it calls inside. A ``routine`` has no entry from Python and no
reference counts: it takes tables by reference (``streams.kernels.borrowing``) and neither makes nor slices an array.
What the flags save was measured: ``docs/adr/0028-tables-by-reference.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])

_OF_KERNELS_ONLY: dict[str, Any] = {"nogil": True, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: Function) -> Function:
    """What Python calls: compiled when it is first called, kept for later processes, without the interpreter's lock."""
    return cast(Function, njit(cache=True, nogil=True)(function))


def routine(function: Function) -> Function:
    """What only kernels call; it makes no array and no view of one."""
    compiled: Function = njit(**_OF_KERNELS_ONLY)(function)
    return compiled


def inlined(function: Function) -> Function:
    """A routine that is part of each of its callers once it is machine code; the compiler types it once."""
    compiled: Function = njit(forceinline=True, **_OF_KERNELS_ONLY)(function)
    return compiled
