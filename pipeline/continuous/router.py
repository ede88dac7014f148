"""The router: appends the derived events of blocks to the log, ahead of the indexer.

A derived event with another key waits for nothing but its block, so a hop from shard to shard does not wait for lists,
counters and deliveries. The same block may be routed again: the range of the shard's log that it covers never changes,
and the log has a mark of each range whose derived events it holds.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import redis

from pipeline.continuous.blocks import Block, read_blocks
from pipeline.sources.log_reading import connect
from pipeline.sources.options import EventLogOptions
from shards import REKEYED, OutputRow

Route = Callable[[Sequence[OutputRow]], None]
"""Appends the derived events among the rows of at most one step of each shard; again: nothing."""


class RoutingSink(Protocol):
    """A sink whose derived events can be written ahead of the rest; called, it does both."""

    def __call__(self, rows: Sequence[OutputRow], epoch_id: int, /) -> None:
        """Write the rows of a batch."""
        ...

    def route(self, rows: Sequence[OutputRow], /) -> None:
        """Append the derived events among the rows, of at most one step of each shard."""
        ...

    def index(self, rows: Sequence[OutputRow], epoch_id: int, /) -> None:
        """Write the other rows of a batch."""
        ...


_WAIT_MS = 1_000
_PAUSE_S = 0.2
_AHEAD = 8  # rounds of blocks that the router is ahead of the indexer


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """Blocks whose derived events are in the log, at most one of each shard: their rows, and their positions."""

    rows: Sequence[OutputRow]
    untils: Mapping[int, str]


_Found: TypeAlias = tuple[int, Routed | Exception | None]  # the count of beginnings, and what came of a read


class Router:
    """Reads the blocks of all shards; ``begin_at`` comes before everything else."""

    def __init__(self, options: EventLogOptions, route: Route) -> None:
        self._server = connect(options)
        self._route = route
        self._afters: dict[int, str] = {}
        self._run_id = ""
        self._beginnings = 0
        self._lock = threading.Lock()
        self._found: queue.Queue[_Found] = queue.Queue(_AHEAD)
        self._over = threading.Event()  # end once no blocks come
        self._closed = threading.Event()

    def begin_at(self, afters: Mapping[int, str], run_id: str) -> None:
        """Continue after these positions, on the server with this run id; what was found before is dropped."""
        with self._lock:
            self._afters, self._run_id = dict(afters), run_id
            self._beginnings += 1

    def next(self, wait_ms: int) -> Routed | None:
        """Route the next block of each shard; None if no block came in time, or another beginning did."""
        with self._lock:
            beginning, afters = self._beginnings, dict(self._afters)
        blocks, run_id = read_blocks(self._server, afters, wait_ms)
        if not blocks:
            return None
        rows = rows_of_blocks(blocks)
        untils = {block.shard: block.position for block in blocks}
        with self._lock:
            if beginning != self._beginnings:
                return None
            self.route(rows, run_id)
            self._afters.update(untils)
        return Routed(rows=rows, untils=untils)

    def route(self, rows: Sequence[OutputRow], run_id: str) -> None:
        """Append the derived events of at most one block of each shard, read from the server with this run id.

        ``ConnectionError`` if the server was started again, and may have lost blocks that were routed before.
        """
        if run_id != self._run_id and any(row.kind == REKEYED.name for row in rows):
            raise redis.ConnectionError("the server was started again")
        self._route(rows)

    def start(self) -> None:
        """Route blocks from a thread, which ``take`` returns."""
        threading.Thread(target=self._run, name="router", daemon=True).start()

    def finish(self) -> None:
        """End once no more blocks come; ``take`` returns None then."""
        self._over.set()

    def close(self) -> None:
        """End now."""
        self._over.set()
        self._closed.set()

    def take(self, wait_s: float) -> list[Routed] | None:
        """The blocks that were routed since the last call, or after a while; None: there will be no more.

        Raises what routing raised.
        """
        found: list[Routed] = []
        while True:
            try:
                beginning, one = self._found.get(timeout=wait_s) if not found else self._found.get_nowait()
            except queue.Empty:
                return found
            if beginning != self._beginnings:
                continue
            if isinstance(one, Exception):
                raise one
            if one is None:
                return found or None
            found.append(one)

    def _run(self) -> None:
        while not self._closed.is_set():
            is_over, beginning = self._over.is_set(), self._beginnings
            found: Routed | Exception | None
            try:
                found = self.next(1 if is_over else _WAIT_MS)
            # house: allow broad-except: whatever it is, the thread that takes the blocks raises it
            except Exception as error:
                found = error
                self._over.wait(_PAUSE_S)
            if found is not None or is_over:
                self._put((beginning, found))

    def _put(self, found: _Found) -> None:
        while not self._closed.is_set():
            try:
                self._found.put(found, timeout=_PAUSE_S)
            except queue.Full:
                continue
            return


def rows_of_blocks(blocks: Sequence[Block]) -> list[OutputRow]:
    """The rows of blocks, by shard."""
    return [row for block in sorted(blocks, key=lambda block: block.shard) for row in block.to_rows()]
