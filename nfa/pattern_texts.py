"""Pattern texts in one of two languages: the pattern language, or SQL."""

from __future__ import annotations

import re
from functools import lru_cache

from nfa.language.parsing import parse_pattern as parse_own
from nfa.language.parsing import parse_patterns as parse_several
from nfa.syntax import Pattern

_IN_SQL = re.compile(r'(\s|--[^\n]*\n)*PATTERN\s+("[^"]+"|`[^`]+`|\w+)\s+MATCH_RECOGNIZE\b', re.IGNORECASE)


@lru_cache(maxsize=256)
def parse_pattern(text: str) -> Pattern:
    """Parse exactly one pattern, in the pattern language or as ``PATTERN name MATCH_RECOGNIZE (…)``.

    Raises:
        PatternRefused: The text is not valid. The error has its position and advice.
    """
    return parse_own(_in_own_language(text))


@lru_cache(maxsize=16)
def parse_patterns(text: str) -> tuple[Pattern, ...]:
    """Parse all patterns of a text in the pattern language, or the only pattern of a text in SQL."""
    return parse_several(_in_own_language(text))


def _in_own_language(text: str) -> str:
    if not _IN_SQL.match(text):
        return text
    from nfa.sql.stream_pattern import stream_pattern_text  # noqa: PLC0415 - few texts need it, and it loads kernels

    return stream_pattern_text(text)
