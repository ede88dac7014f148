"""Compiles kernels in this process, possibly one of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from streams.compiling.running import exercise_of
from streams.kernels.keeping import keep_needs, kept_of
from streams.kernels.recording import NeededKernel, recorded


def compile_here(exercises: Sequence[str], is_wanted: Callable[[], bool] = lambda: True) -> None:
    """Record which kernels exercises need, and compile the ones that are not cached, the largest first.

    Kernels that other processes are compiling are skipped at first. In the end, this process waits for these processes,
    and compiles any kernels that are still missing. ``is_wanted`` is called before each kernel. If the result is false,
    the kernel is skipped.
    """
    needed: dict[str, list[NeededKernel]] = {name: recorded(exercise_of(name)) for name in exercises}
    for name, kernels in needed.items():
        keep_needs(name, (kernel.name for kernel in kernels))
    unique = {(kernel.name, kernel.signature): kernel for kernels in needed.values() for kernel in kernels}
    largest_first = sorted(unique.values(), key=lambda kernel: kernel.size, reverse=True)
    signatures = Counter(name for name, _ in unique)
    for waits in (False, True):
        for kernel in largest_first:
            is_kept = signatures[kernel.name] == 1 and bool(kept_of([kernel.name]))  # loading a kernel takes time
            if not is_kept and is_wanted():
                kernel.compile(waits=waits)
