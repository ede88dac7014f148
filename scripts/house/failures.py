"""Rules on catching errors, and on marks of unfinished work."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from house.sources import Source, Violation

_BROAD = {"Exception", "BaseException"}
_MARK = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
_ISSUE = re.compile(r"#\d+")


def broad_except(source: Source) -> Iterator[Violation]:
    """Check that only a marked outermost loop catches all exceptions."""
    for node in source.nodes:
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if any(kind is None or source.resolve(kind) in _BROAD for kind in caught):
            yield Violation(source.path, node.lineno, "catches everything: only a marked outermost loop may")


def unissued_todo(source: Source) -> Iterator[Violation]:
    """Check that a mark of unfinished work names its issue."""
    if not _MARK.search(source.text):
        return
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT and _MARK.search(token.string) and not _ISSUE.search(token.string):
            yield Violation(source.path, token.start[0], "unfinished work names an issue, as #12")
