"""Detection of the ends of traces, by end events or by the idle timeout, for hosts whose operators need them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa import IdleTraces
from shards.operators import KeyChoice
from streams import ENDED, NEVER_US, EventBatch, StreamDeclaration, key_hash

_SAVED = {"idle_key": np.uint64, "idle_last": np.int64}


class TraceEnds:
    """Finds the traces that end by the idle timeout, and inserts a row of the type ``streams.ENDED`` where each ends.

    If ``is_needed`` is false, no operator needs these rows, and new traces are not followed. Traces that are already
    open or saved are followed to their ends.
    """

    def __init__(
        self, declaration: StreamDeclaration, saved: Mapping[str, bytes] | None = None, *, is_needed: bool = True
    ) -> None:
        self._idle: IdleTraces | None = None
        arrays = {name: np.frombuffer(body, _SAVED[name]) for name, body in (saved or {}).items()}
        self._set_up(declaration, arrays, is_needed=is_needed)

    def declare(self, declaration: StreamDeclaration, *, is_needed: bool = True) -> None:
        """Apply a declaration. Its idle timeout also applies to open traces."""
        self._set_up(declaration, self._arrays(), is_needed=is_needed)

    def _set_up(self, declaration: StreamDeclaration, arrays: Mapping[str, NDArray[Any]], *, is_needed: bool) -> None:
        self._declaration, timeout_us = declaration, declaration.idle_timeout_us
        self._idle = IdleTraces(timeout_us) if timeout_us is not None and (arrays or is_needed) else None
        if self._idle is not None and arrays:
            self._idle.load_arrays(arrays)

    def marked(self, batch: EventBatch, newest_us: int | None) -> tuple[EventBatch, NDArray[np.int64]]:
        """Insert rows into a batch where traces exceed the idle timeout, and follow the batch's traces.

        Return the batch, and the newest event time up to each of its rows. ``newest_us`` is the newest event time
        before the batch.
        """
        times_us = batch.time_us if newest_us is None else np.maximum(batch.time_us, newest_us)
        now_us = np.maximum.accumulate(times_us)
        if self._idle is None:
            return batch, now_us
        ends = (*self._declaration.end_events, ENDED)
        is_last = np.array([name in ends for name in batch.type_names], np.bool_)[batch.type_codes]
        ended = self._idle.advance(batch.key_hashes, times_us, is_last, NEVER_US if newest_us is None else newest_us)
        if not len(ended):
            return batch, now_us
        order = np.argsort(np.concatenate([2 * np.arange(len(batch)) + 1, 2 * ended.rows]), kind="stable")
        mixed = EventBatch.joined([batch, EventBatch.of_ended(ended.keys, ended.times_us)]).take(order)
        return mixed, np.concatenate([now_us, ended.times_us])[order]

    def pass_time(self, now_us: int) -> EventBatch | None:
        """Return rows for the ends of traces that are idle for too long at ``now_us``, or None if there are none."""
        if self._idle is None or not len(ended := self._idle.pass_time(now_us)):
            return None
        return EventBatch.of_ended(ended.keys, ended.times_us)

    def end(self, key: str) -> None:
        """Forget the trace of a key that has ended for another reason."""
        if self._idle is not None:
            self._idle.forget(np.array([key_hash(key)], np.uint64))

    def stop(self) -> None:
        """Stop following traces, and forget the open ones, because no operator needs their ends any more."""
        self._idle = None

    def keep(self, is_kept: KeyChoice) -> None:
        """Keep the traces of the chosen keys, and drop all others."""
        if self._idle is not None:
            keys = self._idle.keys()
            self._idle.forget(keys[~is_kept(keys)])

    def dump(self) -> dict[str, bytes]:
        """Return the open traces as sections of saved state."""
        return {name: array.tobytes() for name, array in self._arrays().items()}

    def _arrays(self) -> Mapping[str, NDArray[Any]]:
        return {} if self._idle is None else self._idle.dump_arrays()
