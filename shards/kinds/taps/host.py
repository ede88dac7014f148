"""The taps at one place of a shard."""

from __future__ import annotations

from typing import ClassVar

from shards.hosts.keyed_host import KeyedHost, Operator, Outputs
from shards.kinds.derived_rows import DerivedOutput
from shards.operators import NO_OUTPUT, KeyChoice, Output, SavedHost
from streams import EventBatch


class Tap(Operator):
    """A tap at one place. It turns one kind of result of the patterns at the same place into events."""

    def hear(self, output: Output) -> Output:
        definition = self.definition
        events = output.events_of(definition.body["results"], definition.body.get("type") or definition.name)
        return NO_OUTPUT if events is None else DerivedOutput(self.declaration.name, definition, events)

    def process(self, batch: EventBatch) -> Output:
        """Do nothing, because a tap reads results only."""
        return NO_OUTPUT

    def advance_time(self, watermark_us: int) -> Output:
        """Do nothing, because passing time alone makes no event."""
        return NO_OUTPUT

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Do nothing, because a tap has no state."""

    def dump(self) -> SavedHost:
        """Return an empty state, because a tap has nothing to save."""
        return SavedHost(head={}, sections={})

    def load(self, saved: SavedHost) -> None:
        """Do nothing, because a tap has no state."""


class TapHost(KeyedHost):
    """Host of the taps at one place."""

    has_traces: ClassVar[bool] = False

    def hear(self, output: Output) -> Output:
        outputs = tuple(
            tap_output for tap in self._operators.values() if (tap_output := tap.hear(output)) is not NO_OUTPUT
        )
        return Outputs(outputs) if outputs else NO_OUTPUT
