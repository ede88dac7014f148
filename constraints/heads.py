"""Computes which names a trace requires, by the clauses that have a head.

Sets of names are bit masks, because a set may have thousands of clauses.
"""

from __future__ import annotations

from collections.abc import Iterable


class Heads:
    """The clauses with a head: if a trace shows all names of the *body*, it must also show the *head*.

    ``certain`` has the heads of clauses with an empty body. Every trace must show them.
    """

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
        """Return ``names`` and all names that they require, directly or through other names.

        The names in ``certain`` are not added.
        """
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
