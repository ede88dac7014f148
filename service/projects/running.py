"""Runs a project over finite events in this process: its streams and patterns in one shard, fed as by a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from constraints import ConstraintSet, to_document, within_cap
from nfa import build_query
from service.projects.errors import ProjectRefused
from service.registering.routing import RoutedPattern
from shards import DEAD_LETTER, DERIVED, DOCUMENT_KINDS, WAIT, InlineShards, RowBlock
from shards.errors import KeyFinished, KeyNotWhole, NotDerivable, ResultLimitReached, RetractionLate
from shards.kinds.joins import JOIN_SUSPENSION, JoinKind
from streams import (
    BLOCK_EVENTS,
    AttributePath,
    AutoLateness,
    ConstraintsOn,
    ControlRecord,
    Definition,
    EventBatch,
    Input,
    OperatorOn,
    PatternOn,
    Punctuation,
    StreamDeclaration,
    StreamOn,
    parse_time,
)

if TYPE_CHECKING:
    from joins import WaitingInput

Results: TypeAlias = dict[str, list[dict[str, Any]]]
"""Results by the name of their list."""

LISTS = ("alerts", "timeouts", "ended", "deviations", "corrections")
_SHOWN_LETTERS = tuple(one.code for one in (NotDerivable, KeyFinished, KeyNotWhole, ResultLimitReached, RetractionLate))
EVENTS = "events"
"""The list of derived events."""
SUSPENSIONS = "suspensions"
"""The list of suspended joins."""
OWN_LISTS: Mapping[str, str] = {
    result.name: result.plural
    for kind in DOCUMENT_KINDS
    for result in kind.result_kinds
    if result.in_backtests == "listed"
}
"""The lists of further results of document kinds, by kind of result."""

_ROWS = dict(
    zip(("alert", "timeout", "ending", "deviation", "correction", DERIVED.name), (*LISTS, EVENTS), strict=True)
)
_MEMBERS: Mapping[str, Sequence[str]] = {
    "alerts": "pattern key bindings start end detected_at decided_by deviating would_be_lost returns".split(),
    "timeouts": "pattern key bindings missing start due".split(),
    "ended": "pattern key event reason".split(),
    "deviations": "key event event_type time kind constraints symbols allowed released reason".split(),
    "corrections": "pattern key bindings event event_type time".split(),
    EVENTS: "id type time key data".split(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPlan:
    """The streams, constraints and patterns of a project.

    Attributes:
        declarations: By name, in the order in which results are listed.
        sets: The constraints that the transactions of each stream keep.
        patterns: Of each stream, each with whether its set terminates partial matches.
        operators: Of other kinds; undeclared streams between them are derived.
    """

    declarations: Mapping[str, StreamDeclaration]
    sets: Mapping[str, ConstraintSet]
    patterns: Mapping[str, Sequence[tuple[RoutedPattern, bool]]]
    operators: Sequence[Definition] = ()

    def records(self) -> Iterator[tuple[str, ControlRecord]]:
        """The control records that a log would have before the first event, each with its stream."""
        for name, declaration in self.declarations.items():
            yield name, StreamOn(declaration)
        for name in sorted({source.stream for source in self._inputs}.difference(self.declarations)):
            yield name, StreamOn(StreamDeclaration(name=name, derived=True))
        for name in self.declarations:
            for record in self._records(name, self.sets.get(name, ConstraintSet())):
                yield name, record
        for one in self.operators:
            yield one.inputs[0].stream, OperatorOn(one, "fresh")

    def routes(self, stream: str) -> dict[str, AttributePath]:
        """The further keys that operators on a stream use."""
        routes = {one.route for one, _ in self.patterns.get(stream, ())}
        routes |= {source.key for source in self._inputs if source.stream == stream}
        return {route: self.declarations[stream].attribute_of(route) for route in sorted(routes - {""})}

    def results(self, rows: Iterable[tuple[str, bytes]]) -> Results:
        """The results in rows, by list and stream.

        Args:
            rows: Kind and body of each.
        """
        every = [one.pattern for some in self.patterns.values() for one, _ in some]
        with_returns = {pattern.name for pattern in every if pattern.returns}
        found: Results = {name: [] for name in (*LISTS, *OWN_LISTS.values(), EVENTS, DEAD_LETTER.member, SUSPENSIONS)}
        for kind, content in rows:
            body = orjson.loads(content)
            if (name := _ROWS.get(kind)) is not None:
                stream = body["into"] if name == EVENTS else body["stream"]
                if stream not in self.declarations:  # between operators
                    continue
                members = [member for member in _MEMBERS[name] if member in body]
                if name == "alerts" and body["pattern"] not in with_returns:
                    members.remove("returns")
                found[name].append({"stream": stream, **{member: body[member] for member in members}})
            elif kind == DEAD_LETTER.name and body["code"] in _SHOWN_LETTERS:
                found[DEAD_LETTER.member].append({name: body[name] for name in ("stream", "pattern", "key", "reason")})
            elif (own := OWN_LISTS.get(kind)) is not None:
                found[own].append({name: value for name, value in body.items() if name not in ("type", "id")})
            elif kind == JOIN_SUSPENSION.name:
                told = {name: body[name] for name in ("pattern", "key", "event", "time", "reason") if name in body}
                found[SUSPENSIONS].append({"stream": body.get("source", body["pattern"]), **told})
        places = {name: place for place, name in enumerate(self.declarations)}
        for name, some in found.items():
            some.sort(key=_ORDERS.get(name, _no_order))
            some.sort(key=lambda one: places[one["stream"]])
        return found

    @staticmethod
    def numbers(counts: Mapping[str, int]) -> dict[str, int]:
        """The number of results by list, from the number of rows by kind."""
        return {name: counts.get(kind, 0) for kind, name in _ROWS.items()}

    @property
    def _inputs(self) -> list[Input]:
        return sorted({source for one in self.operators for source in one.inputs}, key=astuple)

    def _records(self, stream: str, constraint_set: ConstraintSet) -> Iterator[ControlRecord]:
        patterns = self.patterns.get(stream, ())
        if constraint_set.parts or constraint_set.trace_ends:
            guarded = [build_query(one.pattern) for one, is_guarded in patterns if is_guarded and one.has_whole_traces]
            used, _ = within_cap(constraint_set, guarded)
            yield ConstraintsOn(name=stream, version=1, document=to_document(used))
        for one, is_guarded in patterns:
            yield PatternOn(
                name=one.pattern.name,
                version=1,
                text=one.pattern.text,
                is_guarded=is_guarded and one.has_whole_traces,
                route=one.route,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """The measured bound of out-of-orderness of a stream.

    Attributes:
        seconds: The bound at the end.
        changes: How often it changed.
        late: The number of events that were late.
    """

    seconds: float
    changes: int
    late: int


class ProjectRun:
    """A run of a project in this process.

    Args:
        plan: The project.

    Raises:
        ProjectRefused: Patterns feed each other in a circle, or an ordinary stream.
    """

    def __init__(self, plan: ProjectPlan) -> None:
        self._plan = plan
        self._shards = InlineShards(1)
        self._rows: list[RowBlock] = []
        self._fed: Counter[str] = Counter()
        self._letters: Counter[tuple[str, str]] = Counter()
        self._waits = any(one.body.get("wait") for one in plan.operators)
        for stream, record in plan.records():
            self._shards.say(stream, record)
        refused = [orjson.loads(row.body)["reason"] for block in self._shards.settle() for row in block]
        if refused:
            raise ProjectRefused.of(refused)

    def feed(self, stream: str, events: EventBatch) -> None:
        """Feed events of a stream; the order among events of different streams does not matter."""
        if not self._waits and not isinstance(self._plan.declarations[stream].lateness, AutoLateness):
            self._append(stream, events)
            return
        first = 0
        while first < len(events):  # decisions come after a number of events of the stream, however they are fed
            part = events.slice(first, min(BLOCK_EVENTS - self._fed[stream] % BLOCK_EVENTS, len(events) - first))
            self._append(stream, part)
            first += len(part)
            self._fed[stream] += len(part)
            if not self._fed[stream] % BLOCK_EVENTS:
                self._rows += self._shards.decide(stream)

    def _append(self, stream: str, events: EventBatch) -> None:
        self._shards.feed(stream, events)
        for route, path in self._plan.routes(stream).items():
            self._shards.feed(stream, events.keyed_by(path), route)

    def promise(self, stream: str, promise: Punctuation) -> None:
        """Feed the promise that a range of keys is finished at its time; it may be fed at any point of the run."""
        self._shards.say(stream, promise)

    @property
    def measured(self) -> dict[str, MeasuredRun]:
        """The measured bound of each stream with ``lateness: auto``."""
        found = self._shards.states[0].measures()
        return {
            name: MeasuredRun(
                seconds=(found[name]["lateness_us"] or 0) / 1_000_000,
                changes=self._shards.decided[name],
                late=_late(found[name]),
            )
            for name, declaration in self._plan.declarations.items()
            if isinstance(declaration.lateness, AutoLateness)
        }

    @property
    def late(self) -> dict[str, dict[str, int]]:
        """The number of late events of each stream that had some, by what was done with them."""
        counts = self._shards.states[0].measures()
        found = {name: _late_by_action(counts.get(name, {})) for name in self._plan.declarations}
        return {name: some for name, some in found.items() if some}

    @property
    def dead_letters(self) -> dict[str, dict[str, int]]:
        """The number of dead letters by stream and code, after ``results``."""
        found: dict[str, dict[str, int]] = {}
        for (stream, code), number in sorted(self._letters.items()):
            found.setdefault(stream, {})[code] = number
        return found

    @property
    def losses(self) -> dict[str, str]:
        """A sentence for each stream with late events or dead letters, after ``results``."""
        late, letters = self.late, self.dead_letters
        return {name: _loss(late.get(name, {}), letters.get(name, {})) for name in sorted({*late, *letters})}

    @property
    def waiting(self) -> dict[str, dict[str, WaitingInput]]:
        """The measurements of the inputs of each join with ``wait: auto``."""
        from joins import read_join, waiting_inputs  # noqa: PLC0415 - takes long

        counts = self._shards.states[0].measures()
        found = {}
        for one in self._plan.operators:
            if one.kind != JoinKind.name or not (body := read_join(one.body)).waits:
                continue
            stream = one.inputs[0].stream
            own = {name.removeprefix(f"{one.kind}_"): count or 0 for name, count in counts[stream].items()}
            found[one.name] = waiting_inputs(body, own, self._shards.decider_state(stream, WAIT))
        return found

    @property
    def unkeyed(self) -> dict[str, list[str]]:
        """By join a sentence for each input that had events without a usable key."""
        from joins import read_join, without_keys  # noqa: PLC0415 - takes long

        counts = self._shards.states[0].measures()
        found = {}
        for one in self._plan.operators:
            if one.kind == JoinKind.name:
                own = counts[one.inputs[0].stream].items()
                sums = {name.removeprefix(f"{one.kind}_"): count or 0 for name, count in own}
                found[one.name] = without_keys(read_join(one.body), sums)
        return {name: some for name, some in found.items() if some}

    def results(self, *, is_open: bool) -> Results:
        """The results of the run.

        Args:
            is_open: Whether the transactions continue after the events; otherwise all end with them.
        """
        self._rows += self._shards.pause() if is_open else self._shards.finish()
        rows = (row for block in self._rows for row in block)
        letters = (orjson.loads(row.body) for row in rows if row.kind == DEAD_LETTER.name)
        self._letters = Counter((one["stream"], one["code"]) for one in letters)
        return self._plan.results((row.kind, row.body) for block in self._rows for row in block)


_LATE = {"late_dropped": "dropped", "late_dead_lettered": "dead_lettered", "late_processed": "processed"}


def _late_by_action(measures: Mapping[str, int | None]) -> dict[str, int]:
    return {action: number for name, action in _LATE.items() if (number := measures.get(name))}


def _late(measures: Mapping[str, int | None]) -> int:
    return sum(_late_by_action(measures).values())


def _loss(late: Mapping[str, int], letters: Mapping[str, int]) -> str:
    """A sentence about late events and dead letters, with advice."""
    parts = []
    if late:
        actions = ", ".join(f"{number} {action.replace('_', '-')}" for action, number in late.items())
        parts.append(f"late events: {actions}; a larger lateness of the stream waits longer for them")
    if letters:
        parts.append("dead letters: " + ", ".join(f"{number} {code}" for code, number in letters.items()))
    return "; ".join(parts)


def _no_order(_: Mapping[str, Any]) -> tuple[Any, ...]:
    return ()


def _match_order(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        parse_time(one["end"]),
        parse_time(one["start"]),
        sorted(one["bindings"].items()),
        one["pattern"],
        one["key"],
    )


def _timeout_order(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return parse_time(one["due"]), parse_time(one["start"]), sorted(one["bindings"].items())


def _event_order(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return parse_time(one["time"]), one["id"]


_ORDERS: Mapping[str, Callable[[Mapping[str, Any]], tuple[Any, ...]]] = {
    "alerts": _match_order,
    "timeouts": _timeout_order,
    EVENTS: _event_order,
}
