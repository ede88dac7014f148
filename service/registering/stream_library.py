"""Changes and removal of streams, as use cases without HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nfa import PatternRefused, parse_pattern
from service.errors import StreamInUse
from service.registering.constraint_sets import ConstraintSets
from service.registering.on_stream import StreamRules
from service.runtime import Stores
from service.stores import ANY, Condition, ConstraintsDraft, RegisteredConstraints, StreamRecord, StreamUse
from streams import Clock, StreamDeclaration


class StreamLibrary:
    """The use cases of changing and removing streams."""

    def __init__(self, stores: Stores, constraint_sets: ConstraintSets, clock: Clock) -> None:
        self._stores = stores
        self._constraint_sets = constraint_sets
        self._clock = clock

    def change(
        self, name: str, members: Mapping[str, Any], condition: Condition = ANY, *, is_checked: bool | None = None
    ) -> StreamRecord:
        """Change members of a declaration (``streams.CHANGEABLE``) for later entries of the log, and its checks.

        If the end events change, the constraint set of the stream gets its next version in the same step.
        """

        def changed(
            before: StreamDeclaration, rules: RegisteredConstraints | None
        ) -> tuple[StreamDeclaration, ConstraintsDraft | None]:
            after = replace(before, **members)
            has_other_ends = set(after.end_events) != set(before.end_events)
            draft = self._constraint_sets.redrafted(after, rules) if has_other_ends and rules is not None else None
            if has_other_ends or after.idle_timeout is None:
                known = draft or rules
                self._check_ends(after, None if known is None else known.document)
            return after, draft

        now_us = self._clock.now_us()
        return self._stores.registry.change_stream(name, changed, now_us, condition, is_checked=is_checked)

    def remove(self, name: str, condition: Condition = ANY, *, is_cascading: bool = False) -> list[StreamUse]:
        """Remove a stream at this place of the log, and its counts by hour; results are kept. Returns what it used.

        Raises ``StreamInUse`` if resources use it, unless ``is_cascading``.
        """
        found = self._stores.registry.removal.remove(name, condition, is_cascading=is_cascading)
        self._stores.derived.forget(name)
        self._stores.hours.forget(name)
        return found

    def _check_ends(self, declaration: StreamDeclaration, document: Mapping[str, Any] | None) -> None:
        """Check that all patterns that wait for ends of traces can still see them; else raises ``StreamInUse``."""
        rules = StreamRules(declaration=declaration, document=document)
        for record in self._stores.registry.patterns(declaration.name):
            if record.state == "retired":
                continue
            on_stream = rules.on_stream(parse_pattern(record.text), is_guarded=record.is_guarded)
            try:
                on_stream.ends.check(on_stream.pattern)
            except PatternRefused as error:
                raise StreamInUse(
                    f"the pattern {record.name!r} needs the ends of traces that the stream {declaration.name!r} would "
                    f"not have any more: {error.message}",
                    stream=declaration.name,
                    uses=[{"kind": "pattern", "name": record.name, "state": record.state}],
                ) from error
