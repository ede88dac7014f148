"""Rules on docstrings and comments: certain vague words are refused, and sentences with many pronouns."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from house.sources import Source, Violation

_WORDS = re.compile(
    r"\b(told|said\s+of|says\s+so|stands?\s+for|nobody|goes\s+on|at\s+hand|so\s+many(?!\s+that)|comes\s+of|whence|is\s+there(?=[.;:,]|$))"
)
_PRONOUNS = re.compile(r"\b(it|that|those|one|what)\b", re.IGNORECASE)
_CODE = re.compile(r"``[^`]*``|`[^`]*`")
_SENTENCE_END = re.compile(r"(?<=[.:;])\s")
_MOST = 2
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def plain_docstrings(source: Source) -> Iterator[Violation]:
    """Check that docstrings and comments contain no vague words, and that a first sentence has at most two pronouns."""
    if _WORDS.search(source.text):
        yield from _comments(source)
    for node in source.nodes:
        if not isinstance(node, _DOCUMENTED) or (text := ast.get_docstring(node)) is None:
            continue
        line = node.body[0].lineno
        prose = _CODE.sub("", text)
        if word := _WORDS.search(prose):
            yield Violation(source.path, line, f"{word[0]!r}: name the subject, with the field's word")
        first = _SENTENCE_END.split(prose.strip(), maxsplit=1)[0]
        pronouns = _PRONOUNS.findall(first)
        if len(pronouns) > _MOST:
            yield Violation(source.path, line, f"the first sentence has {', '.join(pronouns)}: at most {_MOST} of them")


def _comments(source: Source) -> Iterator[Violation]:
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT and (word := _WORDS.search(_CODE.sub("", token.string))):
            yield Violation(source.path, token.start[0], f"{word[0]!r}: name the subject, with the field's word")
