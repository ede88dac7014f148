"""Policies: what is matched next. Any policy gives the same results."""

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
    """Chooses among shards that have entries, and within the step of a shard among places that have some.

    Policies that choose alike are equal: a process keeps its states while its options, the policy included, are equal.
    """

    name: ClassVar[str]

    def choose(self, waiting: Mapping[Key, Sequence[Entry]]) -> Key:
        """The shard or place that is next; ``waiting`` has the next entries of each, and is not empty."""
        ...


@dataclass(frozen=True)
class OldestFirst:
    """Chooses the shard or place whose first entry is the oldest: least latency; in a shard, the order of the log."""

    name: ClassVar[str] = "oldest-first"

    def choose(self, waiting: Mapping[Key, Sequence[Entry]]) -> Key:
        return min(waiting, key=lambda one: position_order(waiting[one][0].position))


def in_turns(decoded: Sequence[Decoded], derivation: Derivation, policy: Policy) -> Iterator[Sequence[Decoded]]:
    """Blocks of entries of one place, each to be matched together, in the order of a policy.

    A block has consecutive entries; if streams are derived from some of the places, a block has all entries of a place.
    A stream that is derived from several ones depends on the order of their places only if an event comes
    later than its stream has promised; then the blocks come in the order of the log.
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
        waiting = {key: [[pair for block in own for pair in block]] for key, own in waiting.items()}
    heads = {key: [entry for entry, _ in own[0]] for key, own in waiting.items()}
    while heads:
        key = policy.choose(heads)
        yield waiting[key].pop(0)
        if waiting[key]:
            heads[key] = [entry for entry, _ in waiting[key][0]]
        else:
            del heads[key]


def ticks_last(entries: Sequence[Entry], decode: Decoder, derivation: Derivation) -> Iterator[_Part]:
    """Entries in parts, each with events and the ticks to apply after them.

    A derived stream keeps its events until a tick, so all events may come first, and of each stream the newest tick is
    enough. Only where an event after a tick comes late, everything keeps the order of the log.
    """
    batches = iter(decode([entry for entry in entries if not isinstance(entry, TickEntry)]))
    decoded = [entry if isinstance(entry, TickEntry) else (entry, next(batches)) for entry in entries]
    if _are_in_order(decoded, derivation):
        yield _parted(decoded)
    else:
        yield from (_parted(run) for _, run in groupby(decoded, lambda one: isinstance(one, TickEntry)))


def _parted(decoded: Iterable[Decoded | TickEntry]) -> _Part:
    events: list[Decoded] = []
    ticks: dict[str, TickEntry] = {}
    for one in decoded:
        if not isinstance(one, TickEntry):
            events.append(one)
        elif one.stream not in ticks or one.tick.time_us >= ticks[one.stream].tick.time_us:
            ticks[one.stream] = one
    return events, list(ticks.values())


def _are_in_order(decoded: Sequence[Decoded | TickEntry], derivation: Derivation) -> bool:
    """Whether no event after a tick is older than a tick of its stream, or late in another way."""
    newest_us: dict[str, int] = {}
    blocks: dict[PlaceKey, list[list[Decoded]]] = {}
    is_after = False
    for one in decoded:
        if isinstance(one, TickEntry):
            newest_us[one.stream] = max(one.tick.time_us, newest_us.get(one.stream, one.tick.time_us))
            continue
        blocks.setdefault(_place_of(one), []).append([one])
        is_after |= bool(newest_us)
        least_us = newest_us.get(one[0].stream)
        if least_us is not None and any((batch.time_us < least_us).any() for batch in _batches([[one]])):
            return False
    return not is_after or derivation.is_in_order({key: _batches(blocks[key]) for key in derivation.related(blocks)})


def _place_of(decoded: Decoded) -> PlaceKey:
    return decoded[0].stream, decoded[0].route


def _batches(blocks: Sequence[Sequence[Decoded]]) -> list[EventBatch]:
    return [batch for block in blocks for _, batch in block if isinstance(batch, EventBatch) and len(batch)]
