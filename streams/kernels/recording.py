"""Recording of the kernels that a call reaches, and of their argument types, without compiling any kernel.

While a call is recorded, the names of kernels and routines in this program's modules are bound to functions that Python
runs. The recorded kernels can then be compiled in any order and by several processes, largest first.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from streams.kernels import borrowing, prefetching
from streams.kernels.compiling import Routine
from streams.kernels.keeping import KeptKernel, entry_name


@dataclass(frozen=True, slots=True)
class NeededKernel:
    """A kernel that must be compiled for a signature, with its name in the cache."""

    name: str
    kernel: Any
    signature: tuple[Any, ...]

    @property
    def size(self) -> int:
        """Size of the bytecode of the kernel and its callees. Compile time is roughly proportional to it."""
        return _size(self.kernel, set())

    def compile(self, *, waits: bool) -> None:
        """Compile and store the kernel unless it is cached.

        If another process is compiling it, wait for this process if ``waits`` is true, and otherwise do nothing.
        """
        cache = self.kernel._cache
        if waits or not cache.is_being_compiled():
            self.kernel.compile(self.signature)


def recorded(call: Callable[[], object]) -> list[NeededKernel]:
    """Run ``call`` with interpreted kernels. Return the kernels that were called, the largest first.

    No other thread may use kernels meanwhile.
    """
    calls = _Calls()
    with ExitStack() as ends:
        ends.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # integers wrap silently in kernels, but with warnings in Python
        ends.enter_context(np.errstate(all="ignore"))
        ends.enter_context(_replaced(calls))
        call()
    kernels = (NeededKernel(entry_name(kernel.py_func), kernel, types) for kernel, types in calls.seen)
    return sorted(kernels, key=lambda needed: needed.size, reverse=True)


@dataclass(slots=True)
class _Calls:
    seen: dict[tuple[Any, tuple[Any, ...]], None] = field(default_factory=dict)
    _depth: int = 0

    def interpreted(self, kernel: Any) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            if not self._depth:
                self.seen[kernel, tuple(kernel.typeof_pyval(argument) for argument in arguments)] = None
            with self._inside():
                result = kernel.py_func(*arguments)
            return result if self._depth else _as_returned(result)

        return run

    @contextmanager
    def _inside(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1


@contextmanager
def _replaced(calls: _Calls) -> Iterator[None]:
    """Replace kernels and routines in all loaded modules by plain Python functions, until the block ends.

    The functions record each call in ``calls``.
    """
    spaces = [vars(module) for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    substitutes: dict[int, Any] = {id(borrowing.borrowed): _unchanged, id(prefetching.prefetch): prefetching.nothing}
    for value in (value for space in spaces for value in list(space.values())):
        if isinstance(value, Routine):
            substitutes[id(value)] = value.py_func
        elif isinstance(value, Dispatcher) and isinstance(vars(value).get("_cache"), KeptKernel):
            substitutes.setdefault(id(value), calls.interpreted(value))
    places = [(space, name, value) for space in spaces for name, value in space.items() if id(value) in substitutes]
    for space, name, value in places:
        space[name] = substitutes[id(value)]
    try:
        yield
    finally:
        for space, name, value in places:
            space[name] = value


def _unchanged(table: Any) -> Any:
    return table


def _as_returned(result: Any) -> Any:
    """Convert the numpy numbers in a result to Python's numbers, which compiled code returns."""
    if isinstance(result, tuple) and type(result) is tuple:
        return tuple(_as_returned(part) for part in result)
    return result.item() if isinstance(result, np.generic) else result


def _size(kernel: Any, seen: set[int]) -> int:
    """Return the size of the bytecode of a kernel or routine and all functions that it calls, each counted once."""
    if id(kernel) in seen:
        return 0
    seen.add(id(kernel))
    code, names = kernel.py_func.__code__, kernel.py_func.__globals__
    called = (names.get(name) for name in code.co_names)
    return len(code.co_code) + sum(_size(value, seen) for value in called if isinstance(value, Dispatcher | Routine))
