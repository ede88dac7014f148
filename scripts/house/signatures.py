"""How often a kernel was compiled: a second signature means that a wrapper let another dtype or layout through."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable
from types import ModuleType

_ALLOWED = re.compile(r"#\s*house: allow one-signature: \S+ \S+ \S+")


def surplus_signatures(modules: Iterable[ModuleType] | None = None) -> list[str]:
    """Kernels of the loaded ``*.kernels`` modules that hold more than one compiled signature, one line each."""
    loaded = list(sys.modules.values()) if modules is None else list(modules)
    found = []
    for module in loaded:
        name = getattr(module, "__name__", "")
        if modules is None and ".kernels" not in name:
            continue
        for kernel in vars(module).values():
            signatures = getattr(kernel, "signatures", None)
            function = getattr(kernel, "py_func", None)
            if function is None or not isinstance(signatures, list) or function.__module__ != name:
                continue
            if len(signatures) > 1 and not _ALLOWED.search(_header(function)):
                shown = "; ".join(str(signature) for signature in signatures)
                found.append(f"{name}.{function.__name__} was compiled {len(signatures)} times: {shown}")
    return sorted(found)


def _header(function: object) -> str:
    lines, start = inspect.findsource(function)  # type: ignore[arg-type]
    return "".join(lines[max(start - 2, 0) : start + 2])
