"""Rules on the front of a package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from house.sources import Source, Violation

_ATTACHING = "__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)"


def package_front(source: Source) -> Iterator[Violation]:
    """Check that ``__init__.py`` has only a docstring, imports and ``__all__``.

    Instead of the imports, it may have the line that attaches the stub ``__init__.pyi``. The stub then contains the
    imports, as ``x as x``.
    """
    if source.package is None or Path(source.path).stem != "__init__":
        return
    if not ast.get_docstring(source.tree):
        yield Violation(source.path, 1, "a package says its purpose and promises in a docstring")
    is_lazy = any(_is_attaching(statement) for statement in source.tree.body)
    for position, statement in enumerate(source.tree.body):
        is_docstring = position == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_fit = _is_part_of_lazy(statement) if is_lazy else _is_part_of_plain(statement)
        if not (is_docstring or is_fit):
            yield Violation(source.path, statement.lineno, "the front of a package re-exports and does nothing else")


def _is_part_of_plain(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom) or _is_all(statement)


def _is_part_of_lazy(statement: ast.stmt) -> bool:
    is_library = isinstance(statement, ast.ImportFrom) and statement.module == "lazy_loader"
    return is_library or _is_attaching(statement)


def _is_attaching(statement: ast.stmt) -> bool:
    return ast.unparse(statement) == ast.unparse(ast.parse(_ATTACHING))


def _is_all(statement: ast.stmt) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)] == ["__all__"]
