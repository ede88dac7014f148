"""The taps at one place of a shard."""

from __future__ import annotations

from typing import ClassVar

from shards.hosts.keyed_host import KeyedHost, Operator, Outputs
from shards.kinds.derived_rows import DerivedOutput
from shards.operators import NO_OUTPUT, KeyChoice, Output, SavedHost
from streams import EventBatch


class Tap(Operator):
    """A tap at one place: it makes events of the results of one kind that the host of patterns there emits."""

    def hear(self, output: Output) -> Output:
        one = self.definition
        events = output.events_of(one.body["results"], one.body.get("type") or one.name)
        return NO_OUTPUT if events is None else DerivedOutput(self.declaration.name, one, events)

    def process(self, batch: EventBatch) -> Output:
        """No effect: a tap reads results only."""
        return NO_OUTPUT

    def advance_time(self, watermark_us: int) -> Output:
        """No effect: time alone makes no event."""
        return NO_OUTPUT

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """No effect: a tap has no state."""

    def dump(self) -> SavedHost:
        """No state."""
        return SavedHost(head={}, sections={})

    def load(self, saved: SavedHost) -> None:
        """No effect: a tap has no state."""


class TapHost(KeyedHost):
    """Host of the taps at one place."""

    has_traces: ClassVar[bool] = False

    def hear(self, output: Output) -> Output:
        heard = tuple(found for one in self._operators.values() if (found := one.hear(output)) is not NO_OUTPUT)
        return Outputs(heard) if heard else NO_OUTPUT
