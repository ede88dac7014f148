"""Limits on the size of files and functions, and on the number of files in a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from house.sources import PACKAGES, Source, Violation

FILE_LINES = 600
FUNCTION_LINES = 50
KERNEL_LINES = 80
FOLDER_FILES = 20
CATALOGUES = ("api/routers", "api/schemas", "service/cli")  # catalogues, with one file per item


def file_size(source: Source) -> Iterator[Violation]:
    """Check that a file has at most 600 lines."""
    lines = source.text.count("\n")
    if lines > FILE_LINES:
        yield Violation(source.path, 0, f"{lines} lines, at most {FILE_LINES}: split it by idea")


def function_size(source: Source) -> Iterator[Violation]:
    """Check that a function has at most 50 lines, and a kernel at most 80."""
    limit = KERNEL_LINES if source.is_kernel else FUNCTION_LINES
    for function in source.functions:
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > limit:
            yield Violation(source.path, function.lineno, f"{function.name} has {lines} lines, at most {limit}")


def crowded_folders(paths: Iterable[str]) -> Iterator[Violation]:
    """Check that a folder of a package has at most 20 source files of its own, unless the folder is a catalogue."""
    sources = [path for path in map(PurePosixPath, paths) if path.suffix in (".py", ".lua") and path.stem != "__init__"]
    for folder, files in sorted(Counter(path.parent.as_posix() for path in sources).items()):
        if files > FOLDER_FILES and folder.partition("/")[0] in PACKAGES and folder not in CATALOGUES:
            yield Violation(folder, 0, f"{files} source files, at most {FOLDER_FILES}: divide them by what they do")
