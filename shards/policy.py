"""Policies, which choose the shard and the place to match next. Every policy gives the same results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Protocol, TypeAlias, TypeVar

from shards.derivation import Derivation, PlaceKey
from shards.entries import Entry, TickEntry
from streams import BatchFormatError, EventBatch, position_order

Key = TypeVar("Key", bound=Hashable)
Decoded: TypeAlias = tuple[Entry, EventBatch | BatchFormatError]
Decoder: TypeAlias = Callable[[Sequence[Entry]], Sequence[EventBatch | BatchFormatError]]
_Part: TypeAlias = tuple[Sequence[Decoded], Sequence[TickEntry]]


class Policy(Protocol):
    """Chooses the next shard among shards with entries, and within a shard the next place among places with entries.

    Policies that choose alike must be equal. The policy is an option of a process, and a process drops its states when
    its options change.
    """

    name: ClassVar[str]

    def choose(self, waiting: Mapping[Key, Sequence[Entry]]) -> Key:
        """Return the shard or place to match next. ``waiting`` has the next entries of each, and is never empty."""
        ...


@dataclass(frozen=True)
class OldestFirst:
    """Chooses the shard or place whose first entry is the oldest.

    This gives the least latency. Within a shard, it is the order of the log.
    """

    name: ClassVar[str] = "oldest-first"

    def choose(self, waiting: Mapping[Key, Sequence[Entry]]) -> Key:
        return min(waiting, key=lambda key: position_order(waiting[key][0].position))


def in_turns(decoded: Sequence[Decoded], derivation: Derivation, policy: Policy) -> Iterator[Sequence[Decoded]]:
    """Yield blocks of entries to be matched together, in the order that the policy chooses.

    A block has entries of one place. If places take part in derivation, a block has all entries of its place. Otherwise
    it has consecutive entries. If an event of these places is late, results could depend on the order of places. The
    blocks then have consecutive entries and follow the order of the log.
    """
    blocks = [list(block) for _, block in groupby(decoded, _place_of)]
    waiting: dict[PlaceKey, list[list[Decoded]]] = {}
    for block in blocks:
        waiting.setdefault(_place_of(block[0]), []).append(block)
    related = derivation.related(waiting) if len(waiting) > 1 else ()
    if len(waiting) == 1 or not derivation.is_in_order({key: _batches(waiting[key]) for key in related}):
        yield from blocks
        return
    if related:
        waiting = {key: [[pair for block in place_blocks for pair in block]] for key, place_blocks in waiting.items()}
    heads = {key: [entry for entry, _ in place_blocks[0]] for key, place_blocks in waiting.items()}
    while heads:
        key = policy.choose(heads)
        yield waiting[key].pop(0)
        if waiting[key]:
            heads[key] = [entry for entry, _ in waiting[key][0]]
        else:
            del heads[key]


def ticks_last(entries: Sequence[Entry], decode: Decoder, derivation: Derivation) -> Iterator[_Part]:
    """Split entries into parts. The ticks of a part are applied after its events.

    A derived stream buffers its events until a tick. So one part usually suffices, in which all events come first, and
    then the newest tick of each stream. If an event after a tick is late, however, the parts keep the order of the log.
    """
    batches = iter(decode([entry for entry in entries if not isinstance(entry, TickEntry)]))
    decoded = [entry if isinstance(entry, TickEntry) else (entry, next(batches)) for entry in entries]
    if _are_in_order(decoded, derivation):
        yield _parted(decoded)
    else:
        yield from (
            _parted(run) for _, run in groupby(decoded, lambda decoded_entry: isinstance(decoded_entry, TickEntry))
        )


def _parted(decoded: Iterable[Decoded | TickEntry]) -> _Part:
    events: list[Decoded] = []
    ticks: dict[str, TickEntry] = {}
    for decoded_entry in decoded:
        if not isinstance(decoded_entry, TickEntry):
            events.append(decoded_entry)
        elif (
            decoded_entry.stream not in ticks or decoded_entry.tick.time_us >= ticks[decoded_entry.stream].tick.time_us
        ):
            ticks[decoded_entry.stream] = decoded_entry
    return events, list(ticks.values())


def _are_in_order(decoded: Sequence[Decoded | TickEntry], derivation: Derivation) -> bool:
    """Return whether all events may be applied before all ticks. They may not if an event after a tick is late."""
    newest_us: dict[str, int] = {}
    blocks: dict[PlaceKey, list[list[Decoded]]] = {}
    is_after = False
    for decoded_entry in decoded:
        if isinstance(decoded_entry, TickEntry):
            newest_us[decoded_entry.stream] = max(
                decoded_entry.tick.time_us, newest_us.get(decoded_entry.stream, decoded_entry.tick.time_us)
            )
            continue
        blocks.setdefault(_place_of(decoded_entry), []).append([decoded_entry])
        is_after |= bool(newest_us)
        least_us = newest_us.get(decoded_entry[0].stream)
        if least_us is not None and any((batch.time_us < least_us).any() for batch in _batches([[decoded_entry]])):
            return False
    return not is_after or derivation.is_in_order({key: _batches(blocks[key]) for key in derivation.related(blocks)})


def _place_of(decoded: Decoded) -> PlaceKey:
    return decoded[0].stream, decoded[0].route


def _batches(blocks: Sequence[Sequence[Decoded]]) -> list[EventBatch]:
    return [batch for block in blocks for _, batch in block if isinstance(batch, EventBatch) and len(batch)]
