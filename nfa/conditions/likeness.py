"""LIKE: the tokens of a pattern, and a test whose time is linear in the length of the text.

``%`` cuts a pattern into segments. The first and the last segment are compared with the ends of the text. Each other
segment is searched for after the occurrence of the previous segment. Its first occurrence suffices, because ``%``
absorbs any difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

# Tokens besides characters.
ANY_CHARACTER, ANY_TEXT = "_", "%"

_ABSENT = -1
_Search: TypeAlias = Callable[[str, int], int]
_Token: TypeAlias = tuple[str, bool]


def like_tokens(pattern: str) -> list[_Token]:
    """Return the tokens of a LIKE pattern: characters, and the wildcards ``ANY_CHARACTER`` and ``ANY_TEXT``.

    A flag marks the wildcards. A backslash makes the next character literal. A backslash at the end is literal itself.
    """
    tokens: list[_Token] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            tokens.append((next(characters, character), False))
        else:
            tokens.append((character, character in (ANY_CHARACTER, ANY_TEXT)))
    return tokens


def like_test(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether a text matches a LIKE pattern."""
    first, *others = _segments(pattern)
    if not others:
        return lambda text: len(text) == len(first) and _is_at(first, text, 0)
    *middle, last = others
    searches = [(len(segment), _search(segment)) for segment in middle if segment]

    def test(text: str) -> bool:
        position, end = len(first), len(text) - len(last)
        if position > end or not _is_at(first, text, 0) or not _is_at(last, text, end):
            return False
        for size, search in searches:
            place = search(text, position)
            if place == _ABSENT:
                return False
            position = place + size
        return position <= end

    return test


def _segments(pattern: str) -> list[list[_Token]]:
    segments: list[list[_Token]] = [[]]
    for token in like_tokens(pattern):
        if token == (ANY_TEXT, True):
            segments.append([])
        else:
            segments[-1].append(token)
    return segments


def _is_at(segment: Sequence[_Token], text: str, place: int) -> bool:
    return all(is_wild or text[place + offset] == character for offset, (character, is_wild) in enumerate(segment))


def _search(segment: Sequence[_Token]) -> _Search:
    """Return a function that searches a text for the segment, from a given index on.

    The function returns the index of the first occurrence, or ``_ABSENT``.
    """
    if not any(is_wild for _, is_wild in segment):
        literal = "".join(character for character, _ in segment)
        return lambda text, start: text.find(literal, start)
    # Shift-And (R. Baeza-Yates, G. Gonnet, 1992): bit n is set if the newest n + 1 characters match the segment.
    anything = sum(1 << place for place, (_, is_wild) in enumerate(segment) if is_wild)
    masks: dict[str, int] = {}
    for place, (character, is_wild) in enumerate(segment):
        if not is_wild:
            masks[character] = masks.get(character, anything) | 1 << place
    match_bit = 1 << (len(segment) - 1)

    def search(text: str, start: int) -> int:
        reached = 0
        for place in range(start, len(text)):
            reached = (reached << 1 | 1) & masks.get(text[place], anything)
            if reached & match_bit:
                return place + 1 - len(segment)
        return _ABSENT

    return search
