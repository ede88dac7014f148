"""How long a file and a function may be."""

from __future__ import annotations

from collections.abc import Iterator

from house.sources import Source, Violation

FILE_LINES = 600
FUNCTION_LINES = 50
KERNEL_LINES = 80


def file_size(source: Source) -> Iterator[Violation]:
    """A file has at most 600 lines."""
    lines = source.text.count("\n")
    if lines > FILE_LINES:
        yield Violation(source.path, 0, f"{lines} lines, at most {FILE_LINES}: split it by idea")


def function_size(source: Source) -> Iterator[Violation]:
    """A function has at most 50 lines, a kernel 80."""
    limit = KERNEL_LINES if source.is_kernel else FUNCTION_LINES
    for function in source.functions():
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > limit:
            yield Violation(source.path, function.lineno, f"{function.name} has {lines} lines, at most {limit}")
