"""The names that clauses with a head require. Sets of names are bit masks, which keeps many clauses cheap."""

from __future__ import annotations

from collections.abc import Iterable


class Heads:
    """The clauses of a set that have a head. If the body of a clause is empty, every trace must show its head."""

    __slots__ = ("_bits", "_direct", "_long", "certain")

    def __init__(self, clauses: Iterable[tuple[frozenset[str], str]]) -> None:
        self._bits: dict[str, int] = {}
        self._direct: dict[int, int] = {}
        self._long: list[tuple[int, int]] = []
        certain = []
        for names, name in clauses:
            body, head = self._mask(names), self._mask((name,))
            if not names:
                certain.append(name)
            elif len(names) == 1:
                self._direct[body] = self._direct.get(body, 0) | head
            else:
                self._long.append((body, head))
        self.certain = frozenset(certain)

    def closure(self, names: frozenset[str]) -> frozenset[str]:
        """Return ``names`` with all names that they require, transitively; ``certain`` names are not added."""
        closed = waiting = sum(self._bits[name] for name in names if name in self._bits)
        before = closed
        while waiting:
            while waiting:
                lowest = waiting & -waiting
                new = self._direct.get(lowest, 0) & ~closed
                closed |= new
                waiting = (waiting ^ lowest) | new
            for body, head in self._long:
                if not body & ~closed:
                    waiting |= head & ~closed
                    closed |= head
        added = closed & ~before
        return names if not added else names.union(name for name, bit in self._bits.items() if bit & added)

    def _mask(self, names: Iterable[str]) -> int:
        mask = 0
        for name in names:
            mask |= self._bits.setdefault(name, 1 << len(self._bits))
        return mask
