"""Texts as numbers: each text has a code, and the bytes of all texts are in one array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streams import borders_of, bytes_of, pieces_of

Item = TypeVar("Item", bound=np.generic)

_LEAST = 64
_SPARE = 8  # growing arrays get one spare place per this number
_ERRORS = "surrogatepass"


class TextPool:
    """Texts by number (0, 1, and so on), with their bytes in one array."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.bytes = np.zeros(_LEAST, np.uint8)
        self.ends = np.zeros(_LEAST, np.uint32)  # the beginning of each text, then the end of the last text
        self._count = 0
        self.append(texts)

    def __len__(self) -> int:
        return self._count

    def append(self, texts: pa.Array | Sequence[str]) -> None:
        """Add texts, which get the next numbers."""
        if not len(texts):
            return
        if not isinstance(texts, pa.Array):
            texts = pieces_of([text.encode(errors=_ERRORS) for text in texts], pa.binary())
        data, borders = bytes_of(texts), borders_of(texts)
        begin, first = int(self.ends[self._count]), self._count + 1
        self._count += len(texts)
        if begin + len(data) >= 2**32:
            self.ends = self.ends.astype(np.int64)
        self.ends = _with_room(self.ends, self._count + 1)
        self.bytes = _with_room(self.bytes, begin + len(data))
        self.bytes[begin : begin + len(data)] = np.frombuffer(data, np.uint8)
        self.ends[first : first + len(texts)] = borders[1:] - np.int64(borders[0]) + begin

    def text(self, number: int) -> str:
        return self.bytes[self.ends[number] : self.ends[number + 1]].tobytes().decode(errors=_ERRORS)

    def texts_at(self, numbers: NDArray[np.integer]) -> list[str]:
        return texts_between(self.bytes.data, self.ends[numbers], self.ends[numbers + 1])

    def __iter__(self) -> Iterator[str]:
        ends = self.ends[: self._count + 1].tolist()
        data = self.bytes[: ends[-1]].tobytes()
        return (data[begin:end].decode(errors=_ERRORS) for begin, end in pairwise(ends))

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Forget the texts outside the mask ``is_kept``, and renumber the other texts without gaps."""
        sizes = np.diff(self.ends[: self._count + 1])
        self.bytes = self.bytes[: self.ends[self._count]][np.repeat(is_kept, sizes)]
        self.ends = np.append(0, np.cumsum(sizes[is_kept])).astype(self.ends.dtype)
        self._count = len(self.ends) - 1


class KnownTexts(TextPool):
    """Distinct texts by number. The number of a text is its code."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._codes = {text: code for code, text in enumerate(texts)}
        super().__init__(texts)

    def codes(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the codes of texts. New texts get the next free codes."""
        known, count = self._codes, len(self)
        codes = [known.setdefault(text, len(known)) for text in texts]
        self.append([*islice(reversed(known), len(known) - count)][::-1])
        return np.array(codes, np.int64)


def texts_between(data: memoryview, begins: NDArray[np.integer], ends: NDArray[np.integer]) -> list[str]:
    """Return the texts whose bytes begin at ``begins`` and end at ``ends`` in ``data``."""
    places = zip(begins.tolist(), ends.tolist(), strict=True)
    return [str(data[begin:end], errors=_ERRORS) for begin, end in places]


def _with_room(column: NDArray[Item], room: int) -> NDArray[Item]:
    if room <= len(column):
        return column
    grown = np.zeros(room + room // _SPARE, column.dtype)
    grown[: len(column)] = column
    return grown
