"""The rows of a running join: events in memory and on disk, totals of keys, and results that may be retracted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.document import JoinBody
from joins.emitting import DerivedEventBuilder
from joins.held_events import HeldEvents
from joins.items import Item, ItemColumns
from joins.paging import Pager
from joins.retracting import KeyState, Retractions
from joins.totalling import KeyTotals
from joins.windowed import WindowJoin
from streams import SpilledFiles

_KEPT = 8  # no event is dropped up to 1 / _KEPT of the most events ever stored at a time


class JoinRows:
    """The state of a join's keys outside the tables of its kernel: events, totals, retractions, and rows on disk.

    Attributes:
        held: The events that results may still need.
        totals: The totals of unfinished keys.
        retractions: Results that may be retracted. None before the first event that may be retracted.
    """

    def __init__(self, join: WindowJoin, body: JoinBody, files: SpilledFiles, label: str) -> None:
        self._join, self._body, self._files = join, body, files
        self._pager = self._pager_of(label)
        self.held = HeldEvents.empty()
        self.totals = KeyTotals(body)
        self.retractions: Retractions | None = None

    @property
    def files(self) -> list[str]:
        """Names of the files with the rows on disk."""
        return [] if self._pager is None else self._pager.disk.file_names

    def verify(self) -> None:
        """Check the files with the rows on disk by their checksums.

        Raise ``StateLost``, naming the file, if one is missing or damaged.
        """
        if self._pager is not None:
            self._pager.disk.verify()

    def begin_retractions(self, derived: DerivedEventBuilder) -> None:
        """Begin to remember results, because the first event that may be retracted arrives."""
        self.retractions = Retractions(self._body, self._join, derived, self.totals)
        self.retractions.begin(self.held)

    def change(self, body: JoinBody, derived: DerivedEventBuilder, label: str) -> None:
        """Continue as another version of the join. The caller has loaded all rows from disk (``settle``)."""
        self._body = body
        self._pager = self._pager_of(label)
        self.totals.change(body)
        if self.retractions is not None:
            self.retractions.change(body, derived)

    def cuts(self, keys: NDArray[np.uint64]) -> list[int]:
        """Return the indices at which to divide items into parts, so that the rows of each part fit into memory.

        ``keys`` are the hashed keys of the items.
        """
        return [] if self._pager is None else self._pager.cuts(keys)

    def expire(self, now_us: int) -> None:
        """Remove rows on disk that are out of their windows at ``now_us``."""
        if self._pager is not None:
            self._pager.expire(now_us)

    def load_keys(self, keys: NDArray[np.uint64], until_us: int) -> None:
        """Load the rows on disk of the given keys, and of keys that lead to a result by ``until_us``."""
        if self._pager is not None:
            self._pager.load_keys(self._join, self.held, self._key_state, keys, until_us)

    def settle(self, keys: NDArray[np.uint64] | None = None) -> None:
        """Load the rows on disk of the given keys, or of all keys, and drop events that have left their windows.

        Without rows on disk in the join's declaration, nothing happens.
        """
        now_us = self._join.now_us
        if self._pager is not None and now_us is not None:
            self.load_keys(self._pager.disk.keys if keys is None else keys, now_us)
            self._join.push(ItemColumns.of([(Item.TIME, 0, 0, now_us)]))

    def make_room(self) -> None:
        """Forget events that are no longer needed, and move rows to disk if there are too many in memory."""
        needed = 0
        if self.retractions is not None:
            self.retractions.settle(self.held)
            needed = self.retractions.ledger.size
        if self._pager is not None:
            self.held = self._pager.spill(self._join, self.held, self._key_state)
        if self.held.is_sparse(self._join.stored + needed, self._join.most_stored // _KEPT):
            self.held = self.held.only(self._key_state.needed())

    def keys(self) -> NDArray[np.uint64]:
        """Return the hashed keys with an event in memory or on disk, a total, or a result that may be retracted."""
        keys = self._join.keys()
        if self._pager is not None:
            keys = np.concatenate([keys, self._pager.disk.keys])
        others = [*self.totals.open, *(() if self.retractions is None else self.retractions.ledger.keys)]
        return np.union1d(keys, np.array(others, np.uint64)) if others else keys

    def texts(self) -> dict[int, str]:
        """Return the text of each key, by hash, that has a total or a needed event, in memory or on disk."""
        held = self._key_state.texts(self.held)
        for keys, key_texts in () if self._pager is None else self._pager.texts():
            held |= dict(zip(keys.tolist(), key_texts.to_pylist(), strict=True))
        return held

    def drop(self, keys: NDArray[np.uint64]) -> None:
        """Forget the hashed ``keys``, as if their events had never arrived."""
        self._join.drop(keys[np.isin(keys, self._join.keys())])
        if self._pager is not None:
            self._pager.disk.forget(keys)
        for key in keys.tolist():
            self.totals.open.pop(key, None)
        if self.retractions is not None:
            self.retractions.ledger.drop(keys.tolist())

    def clear(self) -> None:
        """Forget all keys with their events, totals and retractions."""
        self._join.drop(self._join.keys())
        if self._pager is not None:
            self._pager.disk.forget(self._pager.disk.keys)
        self.held = HeldEvents.empty()
        self.totals, self.retractions = KeyTotals(self._body), None

    def measures(self) -> dict[str, int]:
        """Return the number of retractable events and of combinations remembered for them.

        Empty without retractions.
        """
        return {} if self.retractions is None else self.retractions.ledger.counts()

    def counted(self, counts: dict[str, int]) -> dict[str, int]:
        """Return ``counts`` (of rows in memory) with the rows on disk added."""
        if self._pager is None:
            return counts
        spilled = self._pager.measures()
        counts["stored"] += spilled["spilled"]
        counts["keys"] += spilled["spilled_keys"]
        counts["expired"] += self._pager.expired
        return counts | spilled

    def clear_counts(self) -> None:
        """Restart the counts of expired, written and read rows on disk from 0."""
        if self._pager is not None:
            self._pager.clear_counts()

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the state as members of a JSON object, and as sections by name."""
        state: dict[str, Any] = {}
        sections: dict[str, bytes] = {}
        if self._pager is not None:
            state["spilled"], sections["spilled"] = self._pager.dump()
        held = self.held.dump(self._key_state.needed())
        sections |= {f"held/{name}": section for name, section in held.items()} | {"totals": self.totals.dump()}
        if self.retractions is not None:
            sections["ledger"] = self.retractions.dump()
        return state, sections

    def load(self, head: Mapping[str, Any], sections: Mapping[str, bytes], derived: DerivedEventBuilder) -> None:
        """Restore the state that ``dump`` saved."""
        self.held = HeldEvents.load(part_of(sections, "held/"))
        if self._pager is not None:
            self._pager.load(head["spilled"], sections["spilled"])
        self.totals.load(sections["totals"])
        if "ledger" in sections:
            self.retractions = Retractions(self._body, self._join, derived, self.totals)
            self.retractions.load(sections["ledger"])

    @property
    def _key_state(self) -> KeyState:
        return KeyState(self._join, self.totals, self.retractions)

    def _pager_of(self, label: str) -> Pager | None:
        rows = self._body.memory_rows
        return None if rows is None else Pager(rows, self._files, label)


def part_of(sections: Mapping[str, bytes], prefix: str) -> dict[str, bytes]:
    """Return the sections whose names begin with a prefix. The prefix is removed from the names."""
    return {name.removeprefix(prefix): section for name, section in sections.items() if name.startswith(prefix)}
