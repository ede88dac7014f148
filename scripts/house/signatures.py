"""Compilations of kernels: a second signature means that a wrapper passed on another dtype or layout.

Before the first test no kernel is compiled: collecting tests must not take minutes.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

_ALLOWED = re.compile(r"#\s*house: allow one-signature: \S+ \S+ \S+")


def surplus_signatures(modules: Iterable[ModuleType] | None = None) -> list[str]:
    """Kernels of the loaded ``*.kernels`` modules with more than one compiled signature, a line each."""
    surplus = []
    for name, kernel in _kernels(modules):
        if len(kernel.signatures) > 1 and not _ALLOWED.search(_header(kernel.py_func)):
            signatures = "; ".join(str(signature) for signature in kernel.signatures)
            surplus.append(f"{name} was compiled {len(kernel.signatures)} times: {signatures}")
    return sorted(surplus)


def called_kernels(modules: Iterable[ModuleType] | None = None) -> list[str]:
    """Kernels of the loaded ``*.kernels`` modules that have been compiled or loaded so far, for some call."""
    return sorted(name for name, kernel in _kernels(modules) if kernel.signatures)


def _kernels(modules: Iterable[ModuleType] | None) -> Iterator[tuple[str, Any]]:
    """Compiled functions with their names, each from its own module."""
    for module in list(sys.modules.values()) if modules is None else modules:
        name = getattr(module, "__name__", "")
        if modules is None and ".kernels" not in name:
            continue
        for kernel in list(vars(module).values()):
            function = getattr(kernel, "py_func", None)
            if function is None or not isinstance(getattr(kernel, "signatures", None), list):
                continue
            if function.__module__ == name:
                yield f"{name}.{function.__name__}", kernel


def _header(function: object) -> str:
    lines, start = inspect.findsource(function)  # type: ignore[arg-type]
    return "".join(lines[max(start - 2, 0) : start + 2])
