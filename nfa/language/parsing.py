"""Parsing of pattern text to syntax trees. Every refusal has line, column and a correction."""

from __future__ import annotations

import re

from nfa.errors import PatternRefused
from nfa.language.checks import checked
from nfa.language.expression_building import Branch
from nfa.language.grammars import Grammar
from nfa.language.tree_building import build_drafts
from nfa.language.words import CONDITION_WORDS, HINTS, STEP_WORDS, TERMINALS, is_plain
from nfa.syntax import NOWHERE, Pattern, Position

_WORD = re.compile(r"\w+|.", re.DOTALL)
_NAME_BEFORE = re.compile(r"[\w-]*\Z")
_NAME_AFTER = re.compile(r"[\w-]{0,100}\w")
_IN_QUOTES = re.compile(r"(['\"])([^'\"`\n]{1,100})\1")
_OPENING = "["  # the text put before a condition that is parsed on its own
_LONGEST_NAME = 100  # maximum number of characters examined before a place
_PAIRS = frozenset(hint for hint in HINTS if len(hint) == 2)
_NAMES_IN_QUOTES = (STEP_WORDS | CONDITION_WORDS) - {"_"}


def parse_patterns(text: str) -> tuple[Pattern, ...]:
    """Parse a text with one or more patterns."""
    return tuple(checked(draft) for draft in build_drafts(parse_tree(text), text))


def parse_pattern(text: str) -> Pattern:
    """Parse a text with exactly one pattern. Other texts are refused."""
    patterns = parse_patterns(text)
    if len(patterns) > 1:
        names = ", ".join(pattern.name for pattern in patterns)
        raise PatternRefused("syntax", f"expected one pattern, found {names}", NOWHERE)
    return patterns[0]


def parse_tree(text: str, start: str = "start") -> Branch:
    """Parse a text by the grammar rule ``start``, ``atom`` or ``condition``."""
    return _GRAMMAR.tree(text, start)


def _advise(text: str, place: int, acceptable: set[str], expected: str) -> tuple[str, int, str]:
    word, back = _word_at(text, place)
    hint = _quoted_name(text, place, acceptable) or _hint(word)
    hint = hint or _hint_at(text, place, is_name="NAME" in acceptable)
    return word, back, f"{expected} ({hint})" if hint else expected


def _hint(word: str) -> str | None:
    if word.upper() in _NAMES_IN_QUOTES:
        return f"as a name, write it in back quotes: `{word}`"
    return HINTS.get(word.upper())


def _quoted_name(text: str, place: int, acceptable: set[str]) -> str | None:
    quoted_match = _IN_QUOTES.match(text, place)
    if quoted_match is None or "QUOTED" not in acceptable or "STRING" in acceptable:
        return None
    name = quoted_match.group(2)
    return f"a name has no such quotes: {name if is_plain(name) else f'`{name}`'}"


def _hint_at(text: str, place: int, *, is_name: bool) -> str | None:
    before, after = _NAME_BEFORE.search(text[max(0, place - _LONGEST_NAME) : place]), _NAME_AFTER.match(text, place)
    left, right = before.group() if before else "", after.group() if after else ""
    if text[place] == "(" and left.upper() in HINTS:
        return HINTS[left.upper()]
    name = left + right
    is_number = left[:1].isdigit()
    is_named = (
        bool(right) and (bool(left) or is_name) and not is_number and any(character.isalpha() for character in name)
    )
    return f"write names with other characters in back quotes: `{name}`" if is_named and not is_plain(name) else None


def _word_at(text: str, place: int) -> tuple[str, int]:
    """Return the word at index ``place``, and the number of characters by which the word begins before ``place``.

    The number is 1 if ``place`` is at the second character of a pair such as ``==``. Otherwise it is 0.
    """
    for start in (place - 1, place):
        if start >= 0 and (pair := text[start : start + 2]) in _PAIRS:
            return pair, place - start
    match = _WORD.match(text, place)
    return match.group() if match else "", 0


def parse_condition_tree(text: str) -> Branch:
    """Parse a condition without brackets. Brackets are added to the text for this.

    Positions of refusals count the added brackets. ``moved`` corrects these positions.
    """
    return parse_tree(f"{_OPENING}{text}\n]", "condition")


def moved(error: PatternRefused, text: str) -> PatternRefused:
    """Return a refusal of ``parse_condition_tree`` with its position in the text without the added brackets."""
    (_, _, message), place, lines = error.message.partition(": "), error.position, text.split("\n")
    if place.line > len(lines):  # the refusal is at the bracket added after the text
        message, place = message.replace("unexpected ']'", "the text ends"), Position(len(lines), len(lines[-1]) + 1)
    elif place.line == 1:
        place = Position(1, max(1, place.column - len(_OPENING)))
    return PatternRefused(error.reason, message, place)


_GRAMMAR = Grammar(__package__, ("start", "atom", "condition"), TERMINALS, _advise)
