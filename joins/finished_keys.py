"""Finished keys of a join's inputs, and the conversion of merged events to items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from joins.document import JoinBody, readings_of
from joins.finished_ranges import FinishedRanges
from joins.items import Item, ItemColumns, keys_before, reminders
from joins.merging import CLOSED, MARKS, REVOCABLE, UNKEYED, finishes_key, input_name
from joins.windowed import WindowJoin
from streams import EventBatch, texts_of

_FEW = 1_024


class FinishedKeys:
    """Converts the merged events of a join to items, and keeps what this needs: finished ranges and newest keys.

    Attributes:
        marked_inputs: For each type of merged events that this version reads, the input and the mark
            (``joins.merging.MARKS``). The types that earlier releases wrote are included.
        newest: The newest key (hashed) of each clustered input. In a clustered input, all events of a key are
            consecutive, so the next key finishes the newest key.
        broken: Number of late events: a range of their input had finished their key.
        other_version: Number of merged events of versions that read inputs in another way. They only advance time.
        ranges: The ranges of keys that inputs have finished.
    """

    def __init__(self, body: JoinBody) -> None:
        self.marked_inputs = {
            f"{input_name(join_input.alias, written)}{mark}": (number, mark)
            for number, (join_input, reading) in enumerate(zip(body.inputs, readings_of(body), strict=True))
            for written in (reading, "")
            for mark in MARKS
        }
        self.newest: dict[int, int] = {}
        self.broken = self.other_version = 0
        self.ranges = FinishedRanges(len(body.inputs))
        self.has_ranges = any(join_input.finishes_ranges for join_input in body.inputs)
        self._body = body
        self._most_over = _FEW

    def own_events(self, batch: EventBatch) -> EventBatch:
        """Return the merged events that this version of the join reads, and count the others in ``other_version``."""
        is_own = np.array([name in self.marked_inputs for name in batch.type_names], np.bool_)
        own_batch = batch.take(np.flatnonzero(is_own[batch.type_codes]))
        self.other_version += len(batch) - len(own_batch)
        return own_batch

    def are_revocable(self, types: Sequence[str]) -> bool:
        """Check whether any of these types of merged events marks events of this version that may be retracted."""
        return any(REVOCABLE in name and name in self.marked_inputs for name in types)

    def change(self, body: JoinBody, texts: Callable[[], Mapping[int, str]]) -> None:
        """Continue as another version of the join.

        ``texts`` returns the text of each key with state, by the key's hash.
        """
        self._body = body
        self.newest = {
            number: key for number, key in self.newest.items() if "clustered" in body.inputs[number].closings
        }
        if not self.has_ranges and any(join_input.finishes_ranges for join_input in body.inputs):
            self.has_ranges = True
            self.note(texts())

    def note(self, texts: Mapping[int, str]) -> None:
        """Remember the numbers of keys that are whole numbers, as ranges apply to them.

        ``texts`` has the keys by their hashes.
        """
        self.ranges.note(texts_of(list(texts.values())), np.array(list(texts), np.uint64))

    def forget(self, keys: NDArray[np.uint64]) -> None:
        """Remove ``keys`` (hashed) from the newest keys of clustered inputs."""
        forgotten = set(keys.tolist())
        self.newest = {number: key for number, key in self.newest.items() if key not in forgotten}

    def clear(self) -> None:
        """Forget all finished ranges and newest keys."""
        self.newest, self.ranges = {}, FinishedRanges(len(self._body.inputs))

    def forget_implied(self, join: WindowJoin, keys: Callable[[], NDArray[np.uint64]]) -> None:
        """Drop finished keys from ``join`` if only ranges have closed them, once ``join`` remembers many finished keys.

        The state of such a key follows from the ranges. The newest key of a clustered input is kept, because the next
        key closes it. The numbers of keys without state are dropped too. ``keys`` returns all hashed keys with state.
        """
        if not self.has_ranges:
            return
        if self.ranges.has_any and join.remembered > self._most_over:
            self.ranges.prune(keys())
            implied = self.ranges.implied(*join.over())
            join.drop(implied[~np.isin(implied, np.array([*self.newest.values()], np.uint64))])
            self._most_over = max(_FEW, 2 * join.remembered)
        if self.ranges.needs_pruning:
            self.ranges.prune(keys())

    def items(self, batch: EventBatch) -> tuple[ItemColumns, NDArray[np.intp]]:
        """Convert merged events to items: events, and closings that follow from marks, clustering and ranges.

        Return the items, and for each item the row of its merged event.
        """
        # rows have only these types
        marked_inputs = [self.marked_inputs.get(name, (0, "")) for name in batch.type_names]
        inputs = np.array([number for number, _ in marked_inputs], np.uint8)[batch.type_codes]
        is_event = np.array([mark not in (CLOSED, UNKEYED) for _, mark in marked_inputs])[batch.type_codes]
        is_unkeyed = np.array([mark == UNKEYED for _, mark in marked_inputs])[batch.type_codes]
        uniques = ["unique" in join_input.closings for join_input in self._body.inputs]
        closes = np.array([finishes_key(mark, is_unique=uniques[number]) for number, mark in marked_inputs])
        covered = self._covered(batch)
        is_broken = covered[inputs, np.arange(len(batch))]
        is_last = closes[batch.type_codes] & ~is_broken
        is_known = is_last & self._are_bare(batch)
        is_last &= ~is_known
        clustered = [
            number for number, join_input in enumerate(self._body.inputs) if "clustered" in join_input.closings
        ]
        before = keys_before(clustered, self.newest, inputs, batch.key_hashes, is_event)
        rows, hashes = np.arange(len(batch)), batch.key_hashes
        is_other = np.arange(len(covered))[:, None] == (inputs + 1) % len(covered)
        is_behind = is_other & is_event & (covered.sum(axis=0) == len(covered) - 1)  # else they end the key
        is_taken, is_broken, covered = is_event & ~is_broken, is_event & is_broken, covered & ~is_broken
        parts = [  # in the order within a row: the key before, closings by ranges, the event, closing of its key
            (rows[before != 0], Item.CLOSING, before[before != 0], inputs[before != 0]),
            *reminders(covered & ~is_behind, hashes),
            (rows[is_taken], Item.EVENT, hashes[is_taken], inputs[is_taken]),
            (rows[is_broken], Item.PLACE, np.zeros(int(is_broken.sum()), np.uint64), inputs[is_broken]),
            (rows[is_unkeyed], Item.PLACE, hashes[is_unkeyed], inputs[is_unkeyed]),
            *reminders(covered & is_behind, hashes),
            (rows[is_last], Item.CLOSING, hashes[is_last], inputs[is_last]),
            (rows[is_known], Item.KNOWN, hashes[is_known], inputs[is_known]),
        ]
        return ItemColumns.in_order(parts, batch.time_us)

    def _are_bare(self, batch: EventBatch) -> NDArray[np.bool_]:
        """Return the mask of rows that lack the text of their key. Without ``wait: auto``, the mask is empty.

        Without its text, a key is not known to be a whole number, so no range would ever cover it. Therefore a closing
        must not create state for the key.
        """
        if not self._body.waits:
            return np.zeros(len(batch), np.bool_)
        return batch.lacks_key_text

    def _covered(self, batch: EventBatch) -> NDArray[np.bool_]:
        """Return a mask (inputs, rows): whether the key of the row is in a range that the input has finished."""
        inputs = range(len(self._body.inputs))
        if not self.has_ranges:
            return np.zeros((len(inputs), len(batch)), np.bool_)
        is_whole, keys = self.ranges.note(batch.columns.column("key"), batch.key_hashes)
        return np.array([is_whole & self.ranges.covers(number, keys) for number in inputs], np.bool_)
