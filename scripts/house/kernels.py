"""Rules on imports, callees and compiler flags of kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from house.sources import Source, Violation

_ALLOWED = {"numpy", "numba"}
_ALLOWED_FOR_TYPES = {"__future__", "typing", "collections"}  # NamedTuples of arrays, and annotations
_COMPILED_NAMESPACES = {"numpy", "numba", "math", "typing"}
_DECORATORS = {"numba.njit", "numba.jit", "numba.vectorize", "numba.guvectorize"}
_FLAGS_THAT_LOSE_NAN = {"fast", "nnan"}
_KEEPS = "streams.kernels.compiling.kernel"  # compiles as numba.njit, and caches the compiled code
_WITHOUT_KERNELS = (
    "streams/kernels/keeping.py",
    "streams/kernels/recording.py",
)  # modules about kernels that contain no kernel themselves


def kernel_imports(source: Source) -> Iterator[Violation]:
    """Check that kernels import numpy, numba and other kernels only."""
    if not source.is_kernel or source.path in _WITHOUT_KERNELS:
        return
    for node in source.nodes:
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or "."]
        else:
            continue
        for module in modules:
            top = module.partition(".")[0]
            if top in _ALLOWED | _ALLOWED_FOR_TYPES or _is_kernel(module):
                continue
            yield Violation(source.path, node.lineno, f"a kernel imports numpy, numba and kernels only, not {module}")


def kernel_flags(source: Source) -> Iterator[Violation]:
    """Check that no kernel has ``parallel=True``, which does not survive a fork, or fastmath flags that drop NaN."""
    for function in source.functions:
        for decorator in function.decorator_list:
            if not _is_compiler(source, decorator) or not isinstance(decorator, ast.Call):
                continue
            for keyword in decorator.keywords:
                if message := _flag_problem(keyword):
                    yield Violation(source.path, decorator.lineno, f"{function.name}: {message}")


def cached_callees(source: Source) -> Iterator[Violation]:
    """Check that the callees of a cached kernel are in ``kernels`` folders.

    numba does not notice a change of a callee in another file. Therefore compiled kernels are cached in a folder that
    is named by a digest of all kernel sources (``streams.kept.kernel_digest``), and the digest covers these folders
    only.
    """
    for function in source.functions:
        if not any(_is_cached(source, decorator) for decorator in function.decorator_list):
            continue
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            target = source.resolve(call.func)
            first = target.partition(".")[0]
            is_imported = first in {name.partition(".")[0] for name in source.names.values()}
            if is_imported and first not in _COMPILED_NAMESPACES and not _is_kernel(target):
                yield Violation(
                    source.path, call.lineno, f"{function.name} is cached but calls {target} of another folder"
                )


def _is_kernel(name: str) -> bool:
    """Return whether a dotted name is in a package's ``kernels`` folder."""
    return name.split(".")[1:2] == ["kernels"]


def _is_compiler(source: Source, decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return source.resolve(called) in _DECORATORS


def _is_cached(source: Source, decorator: ast.expr) -> bool:
    if source.resolve(decorator) == _KEEPS:
        return True
    if not _is_compiler(source, decorator) or not isinstance(decorator, ast.Call):
        return False
    return any(keyword.arg == "cache" and _is_true(keyword.value) for keyword in decorator.keywords)


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _flag_problem(keyword: ast.keyword) -> str:
    if keyword.arg == "parallel" and not _is_false(keyword.value):
        return "parallel kernels do not survive fork; parallelise by key over processes"
    if keyword.arg == "fastmath" and not _is_false(keyword.value):
        if not isinstance(keyword.value, ast.Set):
            return "name the fastmath flags, as a set"
        flags = {str(element.value) for element in keyword.value.elts if isinstance(element, ast.Constant)}
        if lost := sorted(flags & _FLAGS_THAT_LOSE_NAN):
            return f"fastmath flags {lost} lose NaN"
    return ""


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
