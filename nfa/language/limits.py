"""Size limits of patterns. Larger patterns are refused as ``too-large`` before any recursive code reads them."""

from __future__ import annotations

import re

from nfa.errors import PatternRefused
from nfa.syntax import NOWHERE, Position

MAX_TEXT = 20_000  # characters
MAX_DEPTH = 50  # levels of brackets; each NOT and each arithmetic sign of an operand counts as a level, too
MAX_STEPS = 64  # atoms, including the steps of NOT and UNTIL
MAX_REPETITIONS = 1_000  # n of {n}
MAX_DURATION_US = 2**62
MAX_BUSINESS_DAYS = 10_000
MAX_LIMIT = 1_000_000_000  # n of LIMIT n

_TOKENS = re.compile(r"--[^\n]*|'[^']*'?|`[^`]*`?|\w+|[^\w\s]")
_CASE = re.compile(r"\bCASE\b", re.IGNORECASE)
_DEEPER = frozenset(["+", "-", "*", "/", "NOT"])
_FRESH = frozenset([",", "AND", "OR"])


def check_text(text: str) -> None:
    """Refuse text that is too long or nested too deeply. Brackets in quotes and comments do not count."""
    if len(text) > MAX_TEXT:
        raise PatternRefused("too-large", f"the text has {len(text)} characters; at most {MAX_TEXT} are read", NOWHERE)
    # For each open bracket, the number of signs (NOT, arithmetic) before the current operand.
    open_signs = [0]
    depth, has_case = 0, _CASE.search(text) is not None
    for match in _TOKENS.finditer(text):
        token = match.group().upper()
        if token in ("(", "["):
            open_signs.append(0)
            depth += 1
        elif token in (")", "]"):
            depth -= open_signs.pop() + 1 if len(open_signs) > 1 else 0
        elif token in _DEEPER:
            open_signs[-1] += 1
            depth += 1
        elif token == "WHEN":  # each branch of a CASE adds a level
            depth += has_case
        elif token in _FRESH:
            depth -= open_signs[-1]
            open_signs[-1] = 0
        if depth > MAX_DEPTH:
            raise PatternRefused(
                "too-large",
                f"brackets, NOT, arithmetic and CASE nest deeper than {MAX_DEPTH}; use fewer, or two patterns",
                position_at(text, match.start()),
            )


def position_at(text: str, place: int) -> Position:
    """Return line and column of the character with index ``place``."""
    return Position(text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place))


def check_repetitions(least: int, most: int | None, position: Position) -> None:
    """Refuse the bounds of a repetition if they are too large, or if no number of iterations is within them."""
    if max(least, most or 0) > MAX_REPETITIONS:
        raise PatternRefused("too-large", f"at most {MAX_REPETITIONS} repetitions are allowed", position)
    if most == 0:
        raise PatternRefused("quantifier", "{0} repeats the step not at all; leave the step out", position)
    if most is not None and least > most:
        raise PatternRefused(
            "quantifier",
            f"at least {least} and at most {most} excludes every number; write {{{most},{least}}}",
            position,
        )
