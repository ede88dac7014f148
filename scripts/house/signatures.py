"""Compiled signatures of kernels. A second signature means that a caller passed another dtype or array layout.

No kernel may be compiled before the first test, because the collection of tests must not take minutes.
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
    """Return a line for each kernel of the loaded ``*.kernels`` modules with more than one compiled signature."""
    surplus = []
    for name, kernel in _kernels(modules):
        if len(kernel.signatures) > 1 and not _ALLOWED.search(_header(kernel.py_func)):
            signatures = "; ".join(str(signature) for signature in kernel.signatures)
            surplus.append(f"{name} was compiled {len(kernel.signatures)} times: {signatures}")
    return sorted(surplus)


def called_kernels(modules: Iterable[ModuleType] | None = None) -> list[str]:
    """Return the kernels of the loaded ``*.kernels`` modules that a call has compiled or loaded so far."""
    return sorted(name for name, kernel in _kernels(modules) if kernel.signatures)


def _kernels(modules: Iterable[ModuleType] | None) -> Iterator[tuple[str, Any]]:
    """Yield the compiled functions with their names, each from the module that defines it."""
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
