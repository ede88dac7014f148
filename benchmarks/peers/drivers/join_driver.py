"""Driver for a join of a stream with itself, with our library: columns in memory, and an input for each type.

Without a variant, the kernel of joins is run in batches of 262,144 rows, from the columns of events to the columns of
pairs. With the variant ``in shards``, one shard in this process does all work of the service per event, in batches of
10,000, down to the rows of derived events as JSON.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import orjson

from benchmarks.peers.drivers.digests import digest_of
from benchmarks.peers.drivers.library_driver import ROUNDS, columns_of, parts_of
from benchmarks.peers.drivers.reading import now, number_of, options_of, tell
from joins import Item, ItemColumns, JoinBody, WindowJoin, read_join
from shards import DERIVED, InlineShards, RowBlock
from shards.kinds.joins import JoinKind, merged_stream
from streams import EventBatch, OperatorOn, StreamDeclaration, StreamOn

ENTRY = 10_000

_Round: TypeAlias = tuple[float, float, Iterable[Sequence[int]]]


def main() -> None:
    """Run the case after a warm-up and print its result: the median of several rounds, or one round in shards."""
    options = options_of("queries", "variant")
    (text,) = orjson.loads(Path(options.queries).read_bytes())
    document = orjson.loads(text)
    ready_at, spent = now(), dict[str, float]()

    def measure(path: str) -> tuple[float, int, str]:
        batch = columns_of(path)
        rounds = [in_shards(document, batch)] if options.variant else by_kernels(document, batch)
        spent["cpu_s"] = median(cpu_s for _, cpu_s, _ in rounds)
        return median(seconds for seconds, _, _ in rounds), *digest_of((0, pair) for pair in rounds[-1][2])

    tell(ready_at, options, measure, spent)


def by_kernels(document: Mapping[str, Any], batch: EventBatch) -> list[_Round]:
    """Return several rounds of the kernel."""
    return [by_kernel(document, batch) for _ in range(ROUNDS)]


def by_kernel(document: Mapping[str, Any], batch: EventBatch) -> _Round:
    """Run the kernel. Return the seconds, the CPU seconds and the pairs.

    The conversion of pairs to Python numbers is not measured.
    """
    body = read_join({name: value for name, value in document.items() if name != "name"})
    join = WindowJoin([one.window for one in body.inputs])
    begin, before_s = time.perf_counter(), time.process_time()
    pairs = [join.push(items_of(body, part)).members for part in parts_of(batch)]
    seconds, cpu_s = time.perf_counter() - begin, time.process_time() - before_s
    return seconds, cpu_s, (pair for part in pairs for pair in part.tolist())


def items_of(body: JoinBody, batch: EventBatch) -> ItemColumns:
    """Return the events as items. All types belong to inputs, so sequence numbers are places in the file."""
    number_of_type = {one: number for number, source in enumerate(body.inputs) for one in source.types}
    inputs = np.array([number_of_type[name] for name in batch.type_names], np.uint8)[batch.type_codes]
    return ItemColumns(
        kinds=np.full(len(batch), Item.EVENT, np.uint8),
        inputs=inputs,
        keys=batch.key_hashes.copy(),  # the kernel is compiled for writable columns
        times_us=batch.time_us.copy(),
    )


def in_shards(document: Mapping[str, Any], batch: EventBatch) -> _Round:
    """Run a shard. Return the seconds, the CPU seconds, and the pairs in the derived events."""
    shards = started(document)
    blocks: list[RowBlock] = []
    begin, before_s = time.perf_counter(), time.process_time()
    for start in range(0, len(batch), ENTRY):
        shards.feed("s", batch.slice(start, min(ENTRY, len(batch) - start)))
        blocks += shards.settle()
    blocks += shards.finish()
    return time.perf_counter() - begin, time.process_time() - before_s, pairs_in(blocks)


def started(document: Mapping[str, Any]) -> InlineShards:
    """Return one shard in which the join runs."""
    name, kind, shards = document["name"], JoinKind(), InlineShards(1)
    declarations = {one.name: one for one in (StreamDeclaration(name="s"), StreamDeclaration(name=name, derived=True))}
    join = kind.read(document, declarations.__getitem__)
    merged = StreamDeclaration(name=merged_stream(name), derived=True)
    for declaration in (*declarations.values(), merged):
        shards.append_record(declaration.name, StreamOn(declaration))
    for part in (join, *kind.parts(join, declarations.__getitem__)):
        shards.append_record(part.inputs[0].stream, OperatorOn(replace(part, version=1), "fresh"))
    shards.settle()
    return shards


def pairs_in(blocks: list[RowBlock]) -> Iterator[list[int]]:
    """Yield the event numbers of each pair."""
    for row in (row for block in blocks for row in block):
        if row.kind != DERIVED.name:
            raise SystemExit(f"unexpected: {row.body.decode()}")
        yield [number_of(one) for one in orjson.loads(row.body)["data"].values()]


if __name__ == "__main__":
    main()
