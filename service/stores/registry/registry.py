"""What is registered: streams, patterns and constraint sets, each with its versions.

Every change is one atomic script that writes the registry and appends the control record to every shard of the log, so
the two never disagree (``service.stores.registry.changes``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from service.errors import (
    MigrationRefused,
    PatternOnOtherStream,
    StreamExists,
    UnknownConstraints,
    UnknownPatternName,
    UnknownStream,
)
from service.stores.conditions import ANY, Condition
from service.stores.connection import PREFIX, Client
from service.stores.log.event_log import EventLog
from service.stores.records import encode
from service.stores.registry.changes import Change, RecordBook, version_of
from service.stores.registry.event_types import STREAMS_KEY, EventTypeStore, SchemaUse
from service.stores.registry.pattern_states import PatternAction, moved, require_writable
from service.stores.registry.registered import (
    ConstraintsDraft,
    RegisteredConstraints,
    RegisteredPattern,
    read_constraints,
    read_declaration,
    read_pattern,
    read_stream,
)
from service.stores.severities import USUAL_SEVERITY, Severity
from streams import (
    USUAL_BUDGET,
    ConstraintsOn,
    PatternOff,
    PatternOn,
    PatternPause,
    Start,
    StreamDeclaration,
    StreamOn,
    WorkBudget,
)

PATTERNS_KEY = PREFIX + "patterns"
PATTERN_VERSIONS_KEY = PREFIX + "pattern-versions"
CONSTRAINTS_KEY = PREFIX + "constraints"
CONSTRAINT_VERSIONS_KEY = PREFIX + "constraint-versions"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternDraft:
    """A pattern that is to be matched.

    Attributes:
        name: Also in the text.
        text: In the pattern language.
        is_guarded: Whether the stream's constraints terminate its partial matches early.
        route: Name of the further key whose traces it looks at; empty for those of the correlation key.
        start: What to do with the partial matches of the version before: drop them (``fresh``), or let that version
            complete them (``migrate``).
        severity: Of its alerts; None: as before, and ``medium`` at first.
        is_draft: Whether it is only written down, to be matched later.
        condition: On what is there.
    """

    name: str
    text: str
    is_guarded: bool = True
    route: str = ""
    start: Start = "fresh"
    severity: Severity | None = None
    is_draft: bool = False
    condition: Condition = ANY

    def is_said_by(self, pattern: RegisteredPattern) -> bool:
        """Whether that is how the pattern is registered already."""
        return (pattern.text, pattern.is_guarded, pattern.route) == (self.text, self.is_guarded, self.route)


class Registry:
    """The registry, next to the log it writes control records into.

    Attributes:
        event_types: The schemas of types of events.
    """

    def __init__(self, client: Client, log: EventLog, budget: WorkBudget = USUAL_BUDGET) -> None:
        self.event_types = EventTypeStore(client)
        self._budget = budget
        self._book = RecordBook(client, log)

    # Streams

    def declare_stream(self, declaration: StreamDeclaration, condition: Condition = ANY) -> bool:
        """Declare a stream; declaring it again in the same words changes nothing.

        Returns:
            Whether it is new.

        Raises:
            StreamExists: It is declared already, differently.
        """

        def change(current: bytes | None) -> Change | None:
            condition.check_record(None if current is None else read_declaration(current, declaration.name))
            if current is None:
                record = encode(declaration=declaration.to_json())
                return Change(record=record, version=1, stream=declaration.name, control=StreamOn(declaration))
            if read_declaration(current, declaration.name) != declaration:
                raise StreamExists(
                    f"the stream {declaration.name!r} exists with another declaration; use another name, or send the "
                    f"existing declaration",
                    stream=declaration.name,
                )
            return None

        _, is_new = self._book.apply(STREAMS_KEY, STREAMS_KEY + ":versions", declaration.name, change)
        return is_new

    def stream(self, name: str) -> StreamDeclaration:
        """The declaration of a stream.

        Raises:
            UnknownStream: There is none.
        """
        return self.stream_with_schemas(name)[0]

    def stream_with_schemas(self, name: str) -> tuple[StreamDeclaration, SchemaUse]:
        """The declaration of a stream, and what it does with schemas.

        Raises:
            UnknownStream: There is none.
        """
        body = self._book.get(STREAMS_KEY, name)
        if body is None:
            raise UnknownStream(f"there is no stream {name!r}; declare it first (POST /v1/streams)", stream=name)
        return read_stream(body, name)

    def streams(self) -> list[StreamDeclaration]:
        """All streams, by name."""
        return [read_declaration(body, name) for name, body in self._book.all(STREAMS_KEY)]

    # Patterns

    def put_pattern(self, stream: str, draft: PatternDraft, now_us: int) -> tuple[RegisteredPattern, bool]:
        """Register a pattern; another text or guard is its next version, the same again changes nothing.

        The next version of a paused pattern is active. A draft that is sent as something to be matched is activated.
        Another severity is no next version: the pattern goes on.

        Returns:
            The pattern as it is now, and whether it changed.

        Raises:
            PatternOnOtherStream: A pattern of that name is on another stream.
            WrongPatternState: It is retired, or the draft is of one that is matched already.
            MigrationRefused: The version that is to go on for a while is matched by another key.
        """

        def change(current: bytes | None) -> Change | None:
            known = None if current is None else read_pattern(current, draft.name)
            there = known if known is not None and known.is_active else None
            draft.condition.check_record(there)
            if there is not None:
                _check_same_stream(there, stream)
                require_writable(there, is_draft=draft.is_draft)
                if draft.is_said_by(there):
                    return self._same_change(there, draft)
            pattern = RegisteredPattern(
                name=draft.name,
                stream=stream,
                text=draft.text,
                version=1 if known is None else known.version + 1,
                is_active=True,
                registered_us=now_us,
                is_guarded=draft.is_guarded,
                route=draft.route,
                severity=draft.severity or (USUAL_SEVERITY if known is None else known.severity),
                stage="draft" if draft.is_draft else "running",
            )
            running = there if there is not None and there.is_running else None
            control = None if draft.is_draft else self._pattern_on(pattern, _start(draft, running))
            return _pattern_change(pattern, control)

        record, is_new = self._book.apply(PATTERNS_KEY, PATTERN_VERSIONS_KEY, draft.name, change)
        return read_pattern(record, draft.name), is_new

    def pause_pattern(self, name: str) -> tuple[RegisteredPattern, bool]:
        """Let a pattern see nothing until it is resumed; its partial matches go.

        Returns:
            The pattern as it is now, and whether it changed.

        Raises:
            UnknownPatternName: There is none.
        """
        return self.move_pattern(name, "pause")

    def resume_pattern(self, name: str) -> tuple[RegisteredPattern, bool]:
        """Let a paused pattern see what comes from here on, as the same version.

        Returns:
            The pattern as it is now, and whether it changed.

        Raises:
            UnknownPatternName: There is none.
        """
        return self.move_pattern(name, "resume")

    def move_pattern(
        self, name: str, action: PatternAction, condition: Condition = ANY, now_us: int | None = None
    ) -> tuple[RegisteredPattern, bool]:
        """Lead a pattern from its state to another; one that was suspended is resumed as its next version.

        Args:
            name: Of the pattern.
            action: What leads to the other state.
            condition: On what is there.
            now_us: When a version that begins by it begins; None: when that before did.

        Returns:
            The pattern as it is now, and whether it changed.

        Raises:
            UnknownPatternName: There is none.
            WrongPatternState: The action does not begin in its state.
        """

        def change(current: bytes | None) -> Change | None:
            known = _active(current, name)
            condition.check_record(known)
            return self._moved_change(known, action, now_us)

        record, is_new = self._book.apply(PATTERNS_KEY, PATTERN_VERSIONS_KEY, name, change)
        return read_pattern(record, name), is_new

    def suspend_pattern(self, suspension: Mapping[str, Any]) -> bool:
        """Let every shard stop matching the version of a pattern of which one shard says that it cost too much.

        Args:
            suspension: What that shard says: ``pattern``, ``version`` and why.

        Returns:
            Whether the pattern is suspended for just this: not if another shard said so before, or if it has another
            version by now, is deleted, paused or retired.
        """
        name = suspension["pattern"]

        def change(current: bytes | None) -> Change | None:
            known = _active(current, name)
            if known.version != suspension["version"] or known.state != "active":
                return None
            return _pattern_change(replace(known, suspension=suspension), PatternPause(name))

        try:
            record, _ = self._book.apply(PATTERNS_KEY, PATTERN_VERSIONS_KEY, name, change)
        except UnknownPatternName:
            return False
        return read_pattern(record, name).suspension == suspension

    def remove_pattern(self, name: str, condition: Condition = ANY) -> None:
        """Delete a pattern; its alerts stay.

        Raises:
            UnknownPatternName: There is none.
        """

        def change(current: bytes | None) -> Change | None:
            known = _active(current, name)
            condition.check_record(known)
            return _pattern_change(replace(known, is_active=False), PatternOff(name) if known.is_running else None)

        self._book.apply(PATTERNS_KEY, PATTERN_VERSIONS_KEY, name, change)

    def pattern(self, name: str) -> RegisteredPattern:
        """A pattern that is not deleted.

        Raises:
            UnknownPatternName: There is none.
        """
        return _active(self._book.get(PATTERNS_KEY, name), name)

    def pattern_version(self, name: str, version: int | None = None) -> RegisteredPattern:
        """A version of a pattern that is not deleted, the current one unless another is asked for.

        Raises:
            UnknownPatternName: There is none.
        """
        current = self.pattern(name)
        if version in (None, current.version):
            return current
        body = self._book.get(PATTERN_VERSIONS_KEY, version_of(name, version or current.version))
        if body is None:
            raise UnknownPatternName(
                f"the pattern {name!r} has no version {version}; it has 1 to {current.version}", pattern=name
            )
        return read_pattern(body, name)

    def pattern_versions(self, name: str) -> list[RegisteredPattern]:
        """Every version that a pattern has had, the current one last.

        Raises:
            UnknownPatternName: There is none.
        """
        last = self.pattern(name).version
        return [read_pattern(body, name) for body in self._book.versions(PATTERN_VERSIONS_KEY, name, last)]

    def patterns(self, stream: str | None = None) -> list[RegisteredPattern]:
        """All patterns that are not deleted, by name, in whatever state they are."""
        everything = (read_pattern(body, name) for name, body in self._book.all(PATTERNS_KEY))
        return [pattern for pattern in everything if pattern.is_active and stream in (None, pattern.stream)]

    def severities(self) -> dict[str, Severity]:
        """The severity of each pattern's alerts, by name; of deleted patterns too, as some of theirs may still come."""
        return {name: read_pattern(body, name).severity for name, body in self._book.all(PATTERNS_KEY)}

    def _pattern_on(self, pattern: RegisteredPattern, start: Start) -> PatternOn:
        return PatternOn(
            name=pattern.name,
            version=pattern.version,
            text=pattern.text,
            is_guarded=pattern.is_guarded,
            start=start,
            route=pattern.route,
            budget=self._budget,
        )

    def _same_change(self, there: RegisteredPattern, draft: PatternDraft) -> Change | None:
        """What changes where a pattern is sent in the words that it has: its severity, and a draft may be activated."""
        graded = replace(there, severity=draft.severity or there.severity)
        if there.state == "draft" and not draft.is_draft:
            return self._moved_change(graded, "activate")
        return None if graded == there else _pattern_change(graded, None)  # the log has no need to know

    def _moved_change(
        self, pattern: RegisteredPattern, action: PatternAction, now_us: int | None = None
    ) -> Change | None:
        """The change that an action makes; the log is told what concerns a pattern that it knows, or is to know."""
        after = moved(pattern, action, now_us)
        if after == pattern:
            return None
        control: PatternOn | PatternOff | PatternPause | None
        if after.state == "active":
            control = self._pattern_on(after, "fresh")
        elif after.state == "paused":
            control = PatternPause(after.name)
        else:
            control = PatternOff(after.name) if pattern.state == "active" else None
        return _pattern_change(after, control)

    # Constraint sets

    def change_constraints(
        self,
        stream: str,
        change: Callable[[RegisteredConstraints | None], ConstraintsDraft],
        now_us: int,
        condition: Condition = ANY,
    ) -> tuple[RegisteredConstraints, bool]:
        """Give a stream a constraint set that depends on the one it has; what it has already changes nothing.

        Args:
            stream: Its name.
            change: From the current set to the next; may be called again when another writer comes in between, and may
                raise.
            now_us: Microseconds UTC.
            condition: On the current set.

        Returns:
            The constraint set as it is now, and whether it changed.
        """

        def changed(current: bytes | None) -> Change | None:
            known = None if current is None else read_constraints(current, stream)
            condition.check_record(known)
            draft = change(known)
            if known is not None and known.says(draft):
                return None
            version = 1 if known is None else known.version + 1
            record = encode(stream=stream, version=version, uploaded_us=now_us, **asdict(draft))
            control = ConstraintsOn(name=stream, version=version, document=draft.document)
            return Change(record=record, version=version, stream=stream, control=control)

        record, is_new = self._book.apply(CONSTRAINTS_KEY, CONSTRAINT_VERSIONS_KEY, stream, changed)
        return read_constraints(record, stream), is_new

    def put_constraints(
        self, stream: str, document: Mapping[str, Any], notices: tuple[str, ...], now_us: int
    ) -> tuple[RegisteredConstraints, bool]:
        """Give a stream a constraint set; another document is its next version, the same one changes nothing.

        Returns:
            The constraint set as it is now, and whether it changed.
        """
        draft = ConstraintsDraft(document=document, notices=notices)
        return self.change_constraints(stream, lambda _: draft, now_us)

    def constraints(self, stream: str) -> RegisteredConstraints:
        """The current constraint set of a stream.

        Raises:
            UnknownConstraints: There is none.
        """
        body = self._book.get(CONSTRAINTS_KEY, stream)
        if body is None:
            raise UnknownConstraints(
                f"the stream {stream!r} has no constraint set; upload one (POST /v1/constraints)", stream=stream
            )
        return read_constraints(body, stream)

    def constraint_versions(self, stream: str) -> list[RegisteredConstraints]:
        """Every constraint set that a stream has had, the current one last.

        Raises:
            UnknownConstraints: There is none.
        """
        last = self.constraints(stream).version
        bodies = self._book.versions(CONSTRAINT_VERSIONS_KEY, stream, last)
        return [read_constraints(body, stream) for body in bodies]

    def constraint_sets(self) -> list[RegisteredConstraints]:
        """The current constraint set of every stream that has one, by name."""
        return [read_constraints(body, name) for name, body in self._book.all(CONSTRAINTS_KEY)]


def _check_same_stream(running: RegisteredPattern, stream: str) -> None:
    if running.stream != stream:
        raise PatternOnOtherStream(
            f"the pattern {running.name!r} is registered on the stream {running.stream!r}; delete it there first, or "
            "give this one another name",
            pattern=running.name,
            stream=running.stream,
        )


def _start(draft: PatternDraft, running: RegisteredPattern | None) -> Start:
    """How a draft starts in fact: there is nothing to go on where no version sees events."""
    if draft.start == "fresh" or running is None or running.state != "active":
        return "fresh"
    if running.route != draft.route:
        raise MigrationRefused(
            f"the pattern {draft.name!r} is matched by {_named(running.route)} and would be matched by "
            f"{_named(draft.route)}, so its partial matches cannot be continued; register it with 'start': 'fresh'",
            pattern=draft.name,
        )
    return "migrate"


def _named(route: str) -> str:
    return f"the further key {route!r}" if route else "the correlation key"


def _pattern_change(pattern: RegisteredPattern, control: PatternOn | PatternOff | PatternPause | None) -> Change:
    """The change that leaves a pattern so; its route is in use while it sees events."""
    is_seeing = pattern.is_active and pattern.state == "active"
    return Change(
        record=encode(**asdict(pattern)),
        version=pattern.version,
        stream=pattern.stream,
        control=control,
        route=pattern.route if is_seeing else "",
    )


def _active(body: bytes | None, name: str) -> RegisteredPattern:
    pattern = None if body is None else read_pattern(body, name)
    if pattern is None or not pattern.is_active:
        raise _unknown_pattern(name)
    return pattern


def _unknown_pattern(name: str) -> UnknownPatternName:
    return UnknownPatternName(f"there is no pattern {name!r}; GET /v1/patterns lists them", pattern=name)
