"""What the front of a package looks like."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from house.sources import Source, Violation


def package_front(source: Source) -> Iterator[Violation]:
    """``__init__.py`` holds a docstring, imports and ``__all__``, nothing else."""
    if source.package is None or Path(source.path).name != "__init__.py":
        return
    if not ast.get_docstring(source.tree):
        yield Violation(source.path, 1, "a package says its purpose and promises in a docstring")
    for position, statement in enumerate(source.tree.body):
        is_docstring = position == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if is_docstring or isinstance(statement, ast.Import | ast.ImportFrom) or _is_all(statement):
            continue
        yield Violation(source.path, statement.lineno, "the front of a package re-exports and does nothing else")


def _is_all(statement: ast.stmt) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)] == ["__all__"]
