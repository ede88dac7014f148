"""Small projects of chained patterns, and what they mean: each stream complete and in order before the next one.

Written from the semantics and from ADR 40; matches are those of ``tests.references.patterns``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hypothesis import strategies as st

from nfa import Pattern, parse_pattern
from shards.kinds.patterns import alert_id
from streams import Event, EventBatch, PatternOn, StreamDeclaration, StreamOn, key_of
from tests.references.patterns.outcome import reference_outcome
from tests.references.patterns.traces import split_traces

SECOND_US = 1_000_000
KEYS = ("0", "1", "2", "k")
SOURCES = ("s0", "s1")
DERIVED = ("d0", "d1", "d2", "d3")
OF_SOURCES = (
    "A a RETURN a.v AS v",
    "SEQ(A a, B b) WITHIN 7 s RETURN b.v AS v, a.w AS w",
    "SEQ(A a, WITHIN 3 s NOT B) RETURN a.v AS v",
    "SEQ(A a, NOT C) WITHIN 6 s RETURN a.v AS v",
    "SEQ(A a, B+ b) WITHIN 5 s RETURN count(b) AS v",
    "SEQ(A a, B b) WHERE [key, v] WITHIN 9 s RETURN b.v AS v",
)
OF_DERIVED = (
    "X x RETURN x.v AS v",
    "_ x RETURN x.v AS v",
    "SEQ(X x, Y y) WITHIN 8 s RETURN y.v AS v",
    "SEQ(_ x, _ y) WITHIN 4 s RETURN x.v AS v",
    "SEQ(X x, WITHIN 2 s NOT _) RETURN x.v AS v",
    "SEQ(X x, NEXT X y) WITHIN 9 s RETURN x.v AS v",
)

Told: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Project:
    """Streams, their patterns, and the events of the streams that clients post to, in order of arrival."""

    declarations: Sequence[StreamDeclaration]  # each behind those that feed it
    patterns: Sequence[tuple[str, Pattern]]
    events: Mapping[str, Sequence[Event]]

    def renamed(self, prefix: str) -> Project:
        """The same with a prefix before the names of streams, patterns and events."""
        declarations = [replace(one, name=prefix + one.name) for one in self.declarations]
        patterns = [
            (
                prefix + stream,
                parse_pattern(
                    pattern.text.replace("PATTERN ", f"PATTERN {prefix}").replace(" INTO ", f" INTO {prefix}")
                ),
            )
            for stream, pattern in self.patterns
        ]
        events = {
            prefix + stream: [replace(event, id=prefix + event.id) for event in some]
            for stream, some in self.events.items()
        }
        return Project(declarations, patterns, events)

    @property
    def records(self) -> list[tuple[str, StreamOn | PatternOn]]:
        """What the log says first."""
        declared = [(one.name, StreamOn(one)) for one in self.declarations]
        return declared + [
            (stream, PatternOn(name=pattern.name, version=1, text=pattern.text)) for stream, pattern in self.patterns
        ]

    def outputs(self) -> set[Told]:
        """Derived events and alerts, in words."""
        streams: dict[str, list[Event]] = {}
        told: set[Told] = set()
        for declaration in self.declarations:
            stream = declaration.name
            found = [(source, pattern) for source, pattern in self.patterns if _feeds(pattern, stream)]
            if not declaration.derived:
                streams[stream] = sorted(self.events[stream], key=lambda event: event.time_us)
            else:
                streams[stream] = self._derived(found, streams)
                told |= {told_event(stream, event) for event in streams[stream]}
        for stream, pattern in self.patterns:
            if pattern.into is None:
                told |= {("alert", identity) for _, _, identity, _, _ in _matches(stream, pattern, streams[stream])}
        return told

    def _derived(self, found: Sequence[tuple[str, Pattern]], streams: Mapping[str, list[Event]]) -> list[Event]:
        events: list[tuple[Any, Event]] = []
        for stream, pattern in found:
            for order, time_us, identity, key, returns in _matches(stream, pattern, streams[stream]):
                assert pattern.into is not None
                own = key if pattern.into.key is None else key_of(returns[pattern.into.key])
                if own is not None:
                    event_type = pattern.into.event_type or pattern.name
                    event = Event(id=identity, type=event_type, time_us=time_us, key=own, data=returns)
                    events.append(((*order, pattern.name, identity), event))
        sources = {stream for stream, _ in found}
        is_ordered = len(sources) > 1 or any(one.into is not None and one.into.key is not None for _, one in found)
        if is_ordered:
            return sorted((event for _, event in events), key=lambda event: (event.time_us, event.id))
        return [event for _, event in sorted(events, key=lambda one: one[0])]


def told_event(stream: str, event: Event) -> Told:
    """A derived event in words."""
    return stream, event.id, event.type, str(event.time_us), event.key, repr(sorted(event.data.items()))


def _feeds(pattern: Pattern, stream: str) -> bool:
    return pattern.into is not None and pattern.into.stream == stream


def _matches(
    stream: str, pattern: Pattern, events: Sequence[Event]
) -> Iterator[tuple[Any, int, str, str, Mapping[str, Any]]]:
    """Order, time, id, key and RETURN of each match."""
    by_key: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_key[event.key].append(event)
    for key, some in by_key.items():
        places = {id(event): place for place, event in enumerate(some)}
        for split in split_traces(pattern, some):
            for match in reference_outcome(pattern, split.events).matches:
                bound = {alias: [split.events[one].id for one in found] for alias, found in match.bindings.items()}
                identity = alert_id(stream, pattern.name, 1, key, bound)
                decided = match.detected
                by_event = decided.by.name == "EVENT"
                place = places[id(split.events[decided.place])] if by_event else 0
                order = decided.is_at_end, decided.time_us, decided.by, place
                yield order, match.detected_us, identity, key, match.returns


@st.composite
def projects(draw: st.DrawFn) -> Project:
    """Patterns from each of two sources and four derived streams to later streams, or to alerts."""
    patterns: list[tuple[str, Pattern]] = []
    for number in range(draw(st.integers(2, 6))):
        source = draw(st.sampled_from((*SOURCES, *DERIVED[: min(number, 3)])))
        text = draw(st.sampled_from(OF_SOURCES if source in SOURCES else OF_DERIVED))
        later = DERIVED if source in SOURCES else DERIVED[DERIVED.index(source) + 1 :]
        into = draw(st.sampled_from((*later, *later, ""))) if number else "d0"
        end = f" INTO {into}{draw(st.sampled_from(('', '', ' KEY v')))} TYPE {draw(st.sampled_from('XXY'))}"
        patterns.append((source, parse_pattern(f"PATTERN p{number} EVENT {text}{end if into else ''}")))
    used = {stream for stream, _ in patterns}
    events = {stream: draw(_events(stream)) if stream in used else [] for stream in SOURCES}
    lateness = {stream: draw(st.sampled_from((None, None, 3))) for stream in SOURCES}
    declarations = [StreamDeclaration(name=name, lateness=lateness[name]) for name in SOURCES]
    for stream, seconds in lateness.items():
        if seconds is not None:
            delays = draw(st.lists(st.integers(0, seconds), min_size=12, max_size=12))
            late = [event.time_us + delay * SECOND_US for event, delay in zip(events[stream], delays, strict=False)]
            events[stream] = [events[stream][row] for row in sorted(range(len(late)), key=late.__getitem__)]
    return Project([*declarations, *(StreamDeclaration(name=name, derived=True) for name in DERIVED)], patterns, events)


@st.composite
def _events(draw: st.DrawFn, stream: str) -> list[Event]:
    row = st.tuples(st.sampled_from("AABBC"), st.sampled_from(KEYS), st.integers(1, 3), st.integers(-1, 2))
    time_us, found = 0, []
    for number, (event_type, key, pause, value) in enumerate(draw(st.lists(row, max_size=12))):
        time_us += pause * SECOND_US
        data = {"v": None if value < 0 else value, "w": number}
        found.append(Event(id=f"{stream}-{number}", type=event_type, time_us=time_us, key=key, data=data))
    return found


def batch_of(events: Sequence[Event]) -> EventBatch:
    """As columns."""
    return EventBatch.from_events(events)
