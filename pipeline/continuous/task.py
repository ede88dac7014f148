"""A task of the continuous runtime, a process that advances its shards until it is asked to stop."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import redis
import structlog

from pipeline.continuous.blocks import BlockWriter, Step, positions, to_bytes
from pipeline.continuous.derived import Derived
from pipeline.continuous.keys import FAILURE_KEY, WAKE_KEY
from pipeline.continuous.leases import CONNECTED_S, LIFE_S, Beats, Leases, remove_unconnected
from pipeline.continuous.questions import MOST_QUESTIONS, Questions
from pipeline.held_shards import HeldOptions, HeldShards
from pipeline.sources.log_reading import START, connect, stored_entry
from pipeline.warmup import load_kernels
from shards import StoredEntry, results_of
from streams import ForestallError, ScriptInput, log_key, position_order, questions_key, read_script, stops_key

_RENEWED_S = 0.5
_MOST_WRITTEN = 8_000_000  # limit for a step of several entries: bytes of results and derived events
SWITCHED_S = 0.0005  # until a busy thread lets others run; Python's default, 5 ms, would dominate the latency

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """The options of a job's tasks.

    Attributes:
        job: The identity of the job. A task stops when another job begins.
        life_s: How old a task's last heartbeat must be for other tasks to take its shards.
        wait_ms: How long a task without entries waits for new entries before it renews its leases.
    """

    held: HeldOptions
    job: str
    life_s: float = LIFE_S
    wait_ms: int = 1_000


class ShardTask:
    """A long-running task, which advances the shards that it leases.

    In each step, it reads entries of a shard, matches them, and writes the results as a block.
    """

    def __init__(self, options: TaskOptions) -> None:
        source = options.held.log
        member = f"forestall-task-{uuid.uuid4().hex[:12]}-{os.getpid()}"
        self._options = options
        self._server = connect(source, name=member)
        self._shards = HeldShards(options.held, is_aside=True)
        self._leases = Leases(self._server, options.job, member, source.shards, options.life_s)
        self._beats = Beats(self._server, member)
        self._writer = BlockWriter(self._server, source.shards)
        self._questions = Questions(self._server, self._shards)
        self._script = read_script("pipeline.continuous", "next_entries")
        self._read = self._server.register_script(self._script.text)
        self._held: dict[int, int] = {}  # epochs by shard
        self._at: dict[int, str] = {}  # by shard: position at which the next step begins
        self._taken: dict[int, tuple[int, str]] = {}  # by shard to load: epoch, position of the next step
        self._most: dict[int, int] = {}  # entries per step, by shard whose entries lead to many results
        self._stops: dict[int, int] = {}  # by shard: the number of its stops when its entries were read
        self._renewed = -_RENEWED_S
        self._has_loaded = False  # whether a shard was loaded after the last renewal; the next renewal reports it
        self._woken = START  # the last entry of ``WAKE_KEY`` that this task has seen

    def run(self) -> None:
        """Advance shards until the job is over and all finished steps are written.

        A new task usually replaces a dead one, so it first removes dead members in order to take their shards.
        """
        try:
            self._renew_leases()
            remove_unconnected(self._server, CONNECTED_S)
            while self.step():
                pass
        finally:
            self.end()

    def step(self) -> bool:
        """Match new entries of the owned shards, a step for each, or wait briefly for entries.

        Return False if the job is over. At least one shard is advanced, even if the leases are due for renewal again.
        Afterwards, questions to the shards are answered.
        """
        if not self._renew_leases():
            return False
        waiting = self._waiting()
        is_first = True
        while waiting and (is_first or time.monotonic() < self._renewed + _RENEWED_S):
            shard = self._options.held.policy.choose(waiting)
            entries = waiting.pop(shard)
            if not is_first and len(entries) < self._options.held.log.max_entries:  # more may have arrived meanwhile
                entries = self._next([shard]).get(shard, entries)
            self._advance(shard, entries)
            is_first = False
        self._questions.answer(self._at)
        return True

    def end(self) -> None:
        """Stop the heartbeat thread, leave the job and close the connections, so that other tasks take the shards."""
        self._shards.close()
        self._beats.end()
        with suppress(redis.RedisError):
            self._leases.leave()
        self._server.close()

    def _renew_leases(self) -> bool:
        """Renew the leases if they are due, drop lost shards, and load at most one new shard.

        Return whether the job continues.
        """
        if time.monotonic() < self._renewed + _RENEWED_S and not self._has_loaded:
            self._load_next()
            return True
        self._renewed, self._has_loaded = time.monotonic(), False
        epochs = self._leases.renew(self._held)
        if epochs is None:
            return False
        at = positions(self._server, self._options.held.log.shards)
        for shard, epoch in list(self._held.items()):
            if epoch != epochs.get(shard) or self._at[shard] != at[shard]:  # a restarted server may have lost steps
                self._lose(shard)
        self._taken = {shard: (epochs[shard], at[shard]) for shard in sorted(epochs.keys() - self._held.keys())}
        self._load_next()
        return True

    def _load_next(self) -> None:
        """Load the state of one newly taken shard. Before the next load, the task advances its loaded shards."""
        for shard, (epoch, at) in list(self._taken.items())[:1]:
            self._shards.load(shard, epoch)
            del self._taken[shard]
            self._held[shard], self._at[shard] = epoch, at
            self._has_loaded = True

    def _lose(self, shard: int) -> None:
        del self._held[shard], self._at[shard]
        self._shards.forget(shard)

    def _waiting(self) -> dict[int, Sequence[StoredEntry]]:
        if self._held and ((next_entries := self._next(self._at)) or self._questions.answer(self._at)):
            return next_entries
        if self._taken:
            return {}
        streams: dict[Any, Any] = {log_key(shard): at for shard, at in self._at.items()} | {WAKE_KEY: self._woken}
        streams |= {questions_key(shard): after for shard, after in self._questions.afters(self._at).items()}
        pages = cast("list[Any]", self._server.xread(streams, count=1, block=self._options.wait_ms) or [])
        for key, entries in pages:
            if key.decode() == WAKE_KEY:
                self._wake(entries[0][0].decode())
        return self._next(self._at) if self._held and pages else {}

    def _wake(self, position: str) -> None:
        self._woken, self._renewed = position, -_RENEWED_S

    def _next(self, shards: Iterable[int]) -> dict[int, Sequence[StoredEntry]]:
        """Read the next entries of the given shards, and return them by shard.

        The same call reads the shards' questions and number of stops, and whether the task has to renew its leases now.
        """
        source = self._options.held.log
        shards = sorted(shards, key=lambda shard: position_order(self._at[shard]))
        question_positions = self._questions.afters(self._at)
        script_inputs: dict[str, ScriptInput] = {
            "wake": WAKE_KEY,
            "places": [place for shard in shards for place in (log_key(shard), stops_key(shard), questions_key(shard))],
            "most_entries": source.max_entries,
            "most_bytes": source.max_bytes,
            "most_questions": MOST_QUESTIONS,
            "afters": [after for shard in shards for after in (self._at[shard], question_positions[shard])],
        }
        woken, replies = cast(
            "tuple[bytes, list[tuple[int, list[Any], list[Any]]]]", self._read(*self._script.bind(script_inputs))
        )
        if woken and woken.decode() != self._woken:
            self._wake(woken.decode())
        self._stops |= {shard: stops for shard, (stops, _, _) in zip(shards, replies, strict=True)}
        for shard, (_, _, questions) in zip(shards, replies, strict=True):
            self._questions.take(shard, [(position, _fields(values)) for position, values in questions])
        return {
            shard: [stored_entry(position, _fields(values)) for position, values in page]
            for shard, (_, page, _) in zip(shards, replies, strict=True)
            if page
        }

    def _advance(self, shard: int, entries: Sequence[StoredEntry]) -> None:
        entries = entries[: self._most.get(shard)]
        before, after = self._at[shard], entries[-1].position
        rows = self._shards.advance(shard, before, entries, self._stops[shard])
        step = Step(
            shard=shard,
            epoch=self._held[shard],
            before=before,
            after=after,
            rows=to_bytes(results_of(rows)),
            derived=Derived.of(rows),
        )
        if self._is_too_large(step, len(entries)):
            self._shards.forget(shard)
            return
        if self._writer.write(step):
            self._at[shard] = after
            return
        log.warning("step-refused", shard=shard, epoch=step.epoch)
        self._lose(shard)
        self._renewed = -_RENEWED_S

    def _is_too_large(self, step: Step, entries: int) -> bool:
        """Return whether a step exceeds the limit of bytes and has to be divided.

        Adapts the size of the shard's next step.
        """
        if step.size_bytes > _MOST_WRITTEN and entries > 1:
            self._most[step.shard] = entries // 2
            return True
        if step.shard in self._most and 4 * step.size_bytes <= _MOST_WRITTEN:
            self._most[step.shard] *= 2
            if self._most[step.shard] >= self._options.held.log.max_entries:
                del self._most[step.shard]
        return False


def run_tasks(options: TaskOptions) -> Callable[[int, Iterable[int]], Iterator[int]]:
    """Return the function that Spark runs on each partition of the job. Each call is one long-running task."""
    return partial(_run, options=options)


def _run(_: int, slots: Iterable[int], options: TaskOptions) -> Iterator[int]:
    """Run a task in each slot of a partition. A task's error is reported to the driver instead of raised.

    Otherwise, Spark would repeat a failed task for ever. The task loads the kernels before it takes shards. Meanwhile,
    other tasks advance these shards.
    """
    sys.setswitchinterval(SWITCHED_S)
    for slot in slots:
        try:
            load_kernels()
            ShardTask(options).run()
        # house: allow broad-except: whatever it is, the driver raises it
        except Exception as error:
            log.exception("task-failed", slot=slot)
            reason = error.message if isinstance(error, ForestallError) else f"{type(error).__name__}: {error}"
            with suppress(redis.RedisError):
                connect(options.held.log).hset(FAILURE_KEY, options.job, reason)
        yield slot


def _fields(values: Sequence[bytes]) -> Mapping[bytes, bytes]:
    return dict(zip(values[::2], values[1::2], strict=True))
