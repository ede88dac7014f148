"""Pattern texts in one of two languages: the pattern language, or SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

from nfa.errors import PatternRefused
from nfa.language.parsing import parse_pattern as parse_own
from nfa.language.parsing import parse_patterns as parse_several
from nfa.syntax import Pattern, Position

_IN_SQL = re.compile(r'(\s|--[^\n]*\n)*PATTERN\s+("[^"]+"|`[^`]+`|\w+)\s+MATCH_RECOGNIZE\b', re.IGNORECASE)


@lru_cache(maxsize=256)
def parse_pattern(text: str) -> Pattern:
    """Parse exactly one pattern, in the pattern language or as ``PATTERN name MATCH_RECOGNIZE (…)``.

    Raises:
        PatternRefused: The text is not valid. The error has its position and advice.
    """
    return _parsed_sql(text) if _IN_SQL.match(text) else parse_own(text)


@lru_cache(maxsize=16)
def parse_patterns(text: str) -> tuple[Pattern, ...]:
    """Parse all patterns of a text in the pattern language, or the only pattern of a text in SQL."""
    return (_parsed_sql(text),) if _IN_SQL.match(text) else parse_several(text)


def _parsed_sql(text: str) -> Pattern:
    """Parse a pattern in SQL. Its positions are those of the text in SQL, not those of the translated text."""
    from nfa.sql.stream_pattern import translated  # noqa: PLC0415 - few texts need it, and it loads kernels

    translation = translated(text)
    try:
        pattern = parse_own(translation.text)
    except PatternRefused as refusal:
        raise PatternRefused(
            refusal.reason, refusal.message.partition(": ")[2], translation.origin(refusal.position)
        ) from None
    moved: Pattern = _moved(pattern, translation.origin)
    return moved


def _moved(value: Any, origin: Callable[[Position], Position]) -> Any:
    """Return a part of a syntax tree with other positions."""
    if isinstance(value, Position):
        return origin(value)
    if isinstance(value, tuple):
        return tuple(_moved(member, origin) for member in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    members = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    return replace(value, **{name: _moved(member, origin) for name, member in members.items()})
