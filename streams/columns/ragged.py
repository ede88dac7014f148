"""Columns whose rows have different lengths: their lexicographic order, and equal rows.

One flat array contains the numbers of all rows, the *words*. The words of a row are between two consecutive ``ends``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MOST = 2**62
_ENDED = 0


@dataclass(frozen=True, slots=True)
class RaggedOrder:
    """The order of rows of different lengths (``ragged_order``).

    Attributes:
        rows: The row indices in this order.
        repeats: Mask over ``rows``: true if a row equals the row before it.
    """

    rows: NDArray[np.intp]
    repeats: NDArray[np.bool_]


def ragged_order(keys: Sequence[NDArray[np.integer]], words: NDArray[np.int64], ends: NDArray[np.int64]) -> RaggedOrder:
    """Sort rows of different lengths by their keys, then by their words (numbers). The sort is stable.

    If the words of one row are the first words of another row, the shorter row comes first. ``keys`` are columns with
    one number for each row, the most significant column first. Words are at least 0. ``ends`` has, for each row, the
    index after its last word. Only words of rows that are still tied are read, one word of each row at a time.
    """
    starts = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
    sizes = ends - starts
    rows = np.lexsort(tuple(reversed(keys))) if keys else np.arange(len(ends))
    is_open = np.zeros(len(rows), np.bool_)  # whether a row still equals the one before it in the order
    is_open[1:] = True
    for key in keys:
        is_open[1:] &= key[rows[1:]] == key[rows[:-1]]
    repeats = np.zeros(len(rows), np.bool_)
    depth = 0
    while len(tied := _tied(is_open)):
        tied_rows, groups = rows[tied], np.cumsum(~is_open[tied], dtype=np.int64)
        nth_words = np.full(len(tied_rows), _ENDED, np.int64)
        is_longer = sizes[tied_rows] > depth
        nth_words[is_longer] = words[starts[tied_rows[is_longer]] + depth] + 1
        order = _stable_order(groups, nth_words)
        rows[tied], nth_words = tied_rows[order], nth_words[order]
        is_same = is_open[tied]
        is_same[1:] &= nth_words[1:] == nth_words[:-1]
        has_ended = nth_words == _ENDED
        repeats[tied] |= is_same & has_ended
        is_open[tied] = is_same & ~has_ended
        depth += 1
    return RaggedOrder(rows, repeats)


def ragged_places(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of all words of the given rows, row by row.

    ``starts`` has the index of each row's first word, and ``sizes`` its number of words.
    """
    ends = np.cumsum(sizes)
    places = np.arange(int(ends[-1]) if len(ends) else 0)
    places += np.repeat(starts - ends + sizes, sizes)
    return places


def ascending_words(words: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort the words within each row. ``ends`` is the index after the last word of each row."""
    if not len(words):
        return words
    return words[_stable_order(np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0)) + 1, words)]


def _tied(is_open: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the indices of rows that are tied with a neighbour.

    ``is_open`` is true for a row tied with the row before it.
    """
    either = is_open.copy()
    either[:-1] |= is_open[1:]
    return np.flatnonzero(either)


def _stable_order(groups: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the indices that sort by group, then by word. The sort is stable. ``groups`` are ascending numbers from 1.

    If group, word and index fit into one integer, such integers are sorted, which is several times faster.
    """
    width, bits = int(words.max()) + 1, len(words).bit_length()
    if (int(groups[-1]) + 1) * width << bits > _MOST:
        return np.lexsort((words, groups))
    keys = groups * width + words
    if np.all(keys[1:] >= keys[:-1]):
        return np.arange(len(keys))
    keys = keys << bits | np.arange(len(keys))
    keys.sort()
    return keys & ((1 << bits) - 1)
