"""Interned texts: a number for each distinct text, and the bytes of all texts in arrays for kernels."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from nfa.arena import grown
from nfa.errors import StateFormatError

DROPPED = -1  # in a renumbering, the entry of a dropped text


class TextPool:
    """A pool of distinct texts, each with a number. Numbers begin at 0 and follow the order of insertion.

    Kernels compare texts by number, because equal texts have equal numbers. They compare the order of texts by UTF-8
    bytes, whose order is that of code points. Text ``n`` is ``data[offsets[n]:offsets[n + 1]]``. Only ``compact``
    changes numbers. Both arrays are replaced when they grow, so callers must fetch them again after texts were
    interned.
    """

    def __init__(self, *, texts: int = 64, size_bytes: int = 1_024) -> None:
        self.offsets = np.zeros(max(texts, 1) + 1, np.int64)
        self.data = np.zeros(max(size_bytes, 1), np.uint8)
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def size_bytes(self) -> int:
        return int(self.offsets[len(self)])

    def intern(self, text: str) -> int:
        """Return the number of a text, which is added if it is new."""
        number = self._numbers.get(text)
        return self._add(text) if number is None else number

    def intern_all(self, texts: Iterable[str]) -> NDArray[np.int64]:
        numbers, add = self._numbers, self._add
        text_numbers = [numbers[text] if text in numbers else add(text) for text in texts]
        return np.array(text_numbers, np.int64)

    def text(self, number: int) -> str:
        if not 0 <= number < len(self):
            raise IndexError(f"text {number} of {len(self)}")
        return _decoded(self.data, int(self.offsets[number]), int(self.offsets[number + 1]))

    def compact(self, used: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keep only the texts with the numbers ``used``, and give them new numbers in the same order.

        ``used`` may be unsorted and have duplicates. The result has the new number for each old number, or ``DROPPED``.
        """
        size = len(self)
        kept_numbers = np.unique(used)
        texts = list(self._numbers)
        renumbering = np.full(size, DROPPED, np.int64)
        renumbering[kept_numbers] = np.arange(len(kept_numbers))
        lengths = np.diff(self.offsets[: size + 1])
        data = self.data[: self.size_bytes][np.repeat(renumbering != DROPPED, lengths)]
        self._numbers = {texts[old]: new for new, old in enumerate(kept_numbers.tolist())}
        self.offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[kept_numbers]), np.zeros(64, np.int64)])
        self.data = np.concatenate([data, np.zeros(1_024, np.uint8)])
        return renumbering

    def dump(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return the pool as two arrays for ``load``: the offsets of the texts and of their end, and the bytes."""
        return self.offsets[: len(self) + 1].copy(), self.data[: self.size_bytes].copy()

    @classmethod
    def load(cls, offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> TextPool:
        """Load a dumped pool, or reject arrays that do not form a pool."""
        is_framed = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(data)
        if not is_framed or bool(np.any(np.diff(offsets) < 0)):
            raise StateFormatError("saved texts are damaged: their offsets do not fit their bytes")
        size = len(offsets) - 1
        pool = cls(texts=size + 64, size_bytes=len(data) + 1_024)
        pool.offsets[: size + 1] = offsets
        pool.data[: len(data)] = data
        borders = offsets.tolist()
        try:
            pool._numbers = {_decoded(data, borders[n], borders[n + 1]): n for n in range(size)}
        except UnicodeDecodeError as error:
            raise StateFormatError(f"saved texts are damaged: {error}") from error
        if len(pool) != size:
            raise StateFormatError("saved texts are damaged: a text occurs twice")
        return pool

    def _add(self, text: str) -> int:
        body = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
        number = len(self)
        start = int(self.offsets[number])
        end = start + len(body)
        if number + 2 > len(self.offsets):
            self.offsets = grown(self.offsets, max(2 * len(self.offsets), number + 2))
        if end > len(self.data):
            self.data = grown(self.data, max(2 * len(self.data), end))
        self.data[start:end] = body
        self.offsets[number + 1] = end
        self._numbers[text] = number
        return number


def _decoded(data: NDArray[np.uint8], start: int, end: int) -> str:
    return data[start:end].tobytes().decode("utf-8", "surrogatepass")
