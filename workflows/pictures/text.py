"""Measures, breaks and escapes the texts of pictures."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BREAKS = re.compile(r"(?<=[\s\-_/.,:;+])|(?<=[a-z])(?=[A-Z])")
_ESCAPES: Mapping[int, str] = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})

_NARROW, _USUAL, _CAPITAL, _WIDE, _DOUBLE = 0.36, 0.61, 0.7, 0.95, 1.05  # widths of letters / font size
_NARROW_LETTERS = frozenset("ijltfrI.,:;'|!()[] ")
_WIDE_LETTERS = frozenset("mwMWQ@%&")

LINE_STEP = 1.25
"""Distance between two lines, as a multiple of the font size."""
MOST_LETTERS = 400
"""Largest number of letters in a drawn text. Longer texts are cut."""
MOST_IN_TITLE = 2_000
"""Largest number of letters in the title of a shape, which a browser shows when the pointer is on the shape."""
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def escaped(text: str) -> str:
    """Escape a text for XML, and replace characters that XML does not allow."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text).translate(_ESCAPES)


def width_of(text: str, size: float) -> float:
    """Estimate the width of a line of text in a font of ``size``. The result is approximate, because fonts differ."""
    return size * sum(map(_part, text))


def shortened(text: str, most: int) -> str:
    """Return at most ``most`` letters of a text. A cut text ends in dots. Each run of white space becomes one space."""
    plain = " ".join(text.split())
    return plain if len(plain) <= most else plain[: most - 1].rstrip() + ELLIPSIS


def wrapped(text: str, width: float, size: float, most_lines: int) -> list[str]:
    """Break a text into lines of about ``width`` at most. If there are too many lines, the last one ends in dots."""
    lines: list[str] = []
    for piece in filter(None, _BREAKS.split(shortened(text, MOST_LETTERS))):
        if lines and width_of((lines[-1] + piece).rstrip(), size) <= width:
            lines[-1] += piece
        else:
            lines.extend(_chopped(piece, width, size))
        if len(lines) > most_lines:
            return [*map(str.rstrip, lines[: most_lines - 1]), _shortened(lines[most_lines - 1], width, size)]
    return [line.rstrip() for line in lines]


def is_whole(text: str, width: float, height: float, size: float) -> bool:
    """Check whether a text fits into a box of this size without being cut or broken inside a word."""
    pieces = _BREAKS.split(shortened(text, MOST_LETTERS))
    if any(width_of(piece.rstrip(), size) > width for piece in pieces):
        return False
    return len(wrapped(text, width, size, len(pieces))) * size * LINE_STEP <= height


def _chopped(piece: str, width: float, size: float) -> list[str]:
    lines, begin, parts = list[str](), 0, 0.0
    for place, letter in enumerate(piece):
        letter_width = _part(letter)
        if place > begin and letter != " " and size * (parts + letter_width) > width:
            lines.append(piece[begin:place])
            begin, parts = place, 0.0
        parts += letter_width
    return [*lines, piece[begin:]]


def _shortened(line: str, width: float, size: float) -> str:
    line = line.rstrip()
    while line and width_of(line + ELLIPSIS, size) > width:
        line = line[:-1]
    return line.rstrip() + ELLIPSIS


def _part(letter: str) -> float:
    if letter in _NARROW_LETTERS:
        return _NARROW
    if letter in _WIDE_LETTERS:
        return _WIDE
    if unicodedata.east_asian_width(letter) in "WF":
        return _DOUBLE
    return 0.0 if unicodedata.combining(letter) else (_CAPITAL if letter.isupper() else _USUAL)
