"""Reference of punctuations: every pattern is kept, and every key is compared with all patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from literature.punctuations.generating import Announcement, BufferRules, Finished, HeldEvent, Released
from literature.punctuations.hints import FinitePunctuation, Scope
from literature.punctuations.patterns import OneOf, Pattern, Range, Value, is_missing, matches


@dataclass
class ReferenceClosedSet:
    """Reference of ``ClosedSet``.

    Attributes:
        patterns: All patterns that were added.
    """

    patterns: list[Pattern] = field(default_factory=list)

    def add(self, pattern: Pattern) -> None:
        """Close the keys of a pattern."""
        self.patterns.append(pattern)

    def covers(self, value: Value | None) -> bool:
        """Whether a key is closed."""
        return not is_missing(value) and any(matches(pattern, value) for pattern in self.patterns)


def broken(released: Released) -> list[tuple[HeldEvent, Announcement]]:
    """The events that break an earlier punctuation, each with the punctuation."""
    violations: list[tuple[HeldEvent, Announcement]] = []
    for begin, announcement in released.said:
        behind = released.events[begin:]
        if isinstance(announcement, Finished):
            violations += [(event, announcement) for event in behind if matches(announcement.pattern, event.key)]
        else:
            in_scope = [event for event in behind if event.key is not None][: announcement.scope.events]
            violations += [(event, announcement) for event in in_scope if not matches(announcement.pattern, event.key)]
    return violations


def reference_release(events: Sequence[HeldEvent], rules: BufferRules) -> Released:
    """Reference of ``BufferGenerator``: everything that it must release for a finished input."""
    released, batch = Released(), list[HeldEvent]()
    for event in events:
        if batch and rules.us is not None and event.time_us >= batch[0].time_us + rules.us:
            _announce(released, batch, events, rules)
        if event.key is None:
            released.events.append(event)
        elif any(
            isinstance(announcement, Finished) and matches(announcement.pattern, event.key)
            for _, announcement in released.said
        ):
            released.late.append(event)
        else:
            batch.append(event)
        if len(batch) == rules.events:
            _announce(released, batch, events, rules)
    _announce(released, batch, events, rules)
    return released


def _announce(released: Released, batch: list[HeldEvent], events: Sequence[HeldEvent], rules: BufferRules) -> None:
    keys = sorted({event.key for event in batch if event.key is not None})
    groups = [keys] if rules.order != "partitioned" else [[key] for key in keys]
    for group in filter(None, groups):
        group_events = [event for event in batch if event.key in group]
        if rules.order == "sorted":
            group_events = [event for key in group for event in group_events if event.key == key]
        is_list = rules.names == "values" or len(group) == 1
        pattern = OneOf(frozenset(group)) if is_list else Range(low=group[0], high=group[-1])
        announced = FinitePunctuation(pattern=pattern, scope=Scope(events=len(group_events)))
        released.said.append((len(released.events), announced))
        released.events += group_events
    batch.clear()
    late = {event.sequence for event in released.late}
    released_keys = [event.key for event in released.events if event.key is not None and event.sequence not in late]
    before = [announcement.to for _, announcement in released.said if isinstance(announcement, Finished)]
    if (
        rules.disorder is not None
        and released_keys
        and max(released_keys) - rules.disorder - 1 > max(before, default=-(1 << 64))
    ):
        mark = max(released_keys) - rules.disorder - 1
        if mark >= -(1 << 63):
            released.said.append((len(released.events), Finished(mark)))
