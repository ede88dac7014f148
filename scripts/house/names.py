"""The rule on the names of variables, parameters, functions and types."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from house.sources import Source, Violation

_WEAK = frozenset("asked found given got made news one put said shown standing taken there told wish".split())
_VERBS = frozenset({"one", "put", "shown"})  # allowed as names of functions


def noun_names(source: Source) -> Iterator[Violation]:
    """Check that names in shipped code and scripts are nouns, such as ``matches`` or ``stored_version``.

    Constants and members of classes are exempt, because some members are names in saved states and JSON.
    """
    if source.package is None and not source.path.startswith("scripts/"):
        return
    members = {
        id(target)
        for node in source.nodes
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign | ast.Assign)
        for target in ast.walk(statement)
    }
    for node in source.nodes:
        name = None if id(node) in members else _given_name(node)
        words = _WEAK - _VERBS if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else _WEAK
        if name is not None and not name.isupper() and name.strip("_").lower() in words:
            yield Violation(source.path, getattr(node, "lineno", 0), f"{name!r}: a noun says what the value is")


def _given_name(node: ast.AST) -> str | None:
    """Return the name that a node binds. For other nodes, return None."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None
