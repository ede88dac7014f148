"""The stores of registered operators, one for each kind, which also append the control records of each change.

All kinds have the same life cycle (``life_cycle``). Patterns have records, control records and errors of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from service.errors import (
    MigrationRefused,
    NotFound,
    OperatorExists,
    OperatorOnOtherStream,
    PatternOnOtherStream,
    RegistryContended,
    ServiceError,
    UnknownOperator,
    UnknownPatternName,
)
from service.stores.conditions import ANY, Condition
from service.stores.connection import PREFIX
from service.stores.record_books import Change, Checks, LogChange, RecordBook, Records, counted
from service.stores.records import encode
from service.stores.registry.life_cycle import Action, begun, moved, require_writable
from service.stores.registry.registered import PATTERN, OperatorDraft, OperatorPart, RegisteredOperator, read_pattern
from service.stores.severities import USUAL_SEVERITY, Severity
from streams import (
    ControlRecord,
    OperatorOff,
    OperatorOn,
    OperatorPause,
    PatternOff,
    PatternOn,
    PatternPause,
    Start,
    WorkBudget,
)

PATTERNS_KEY = PREFIX + "patterns"
OPERATORS_KEY = PREFIX + "operators"


class Operators(Records[RegisteredOperator]):
    """The registered operators of one kind, with all their versions.

    If ``kind`` is empty, the store has the operators of all kinds except patterns, and must be used for reading only.
    """

    key = OPERATORS_KEY
    versions_key = PREFIX + "operator-versions"
    form = RegisteredOperator

    def __init__(self, book: RecordBook, kind: str) -> None:
        super().__init__(book)
        self._kind = kind
        self.prefix = f"{kind}/" if kind else ""
        self.one = f"the {kind or 'operator'}"

    def put(self, stream: str, draft: OperatorDraft, now_us: int) -> tuple[RegisteredOperator, bool]:
        """Register an operator. Return the operator after the call, and whether it changed.

        If the draft differs from the registered operator, the draft becomes the next version. This version has the
        state of the draft, even if the former version is paused. If the draft is equal, no version is created, but the
        state may change: a stored draft is activated or paused, and an active operator is paused. A paused operator is
        not resumed. If only the severity differs, the operator is changed without a new version.

        Raise a ``Conflict`` in these cases:

        - The name is used on another stream or, with ``draft.creates``, by a different operator.
        - The state of the operator does not permit a new version.
        - The former version should complete its partial matches, but the new version reads events by another key.
        """

        def change(stored: RegisteredOperator | None) -> Change | None:
            required = draft.required()
            change = self._registered(stream, draft, now_us, stored)
            return None if change is None else replace(change, checks=required, commands=counted(required))

        return self.apply(draft.name, change)

    def check_put(self, stream: str, draft: OperatorDraft) -> None:
        """Raise the error that ``put`` would raise for a draft now. Change nothing."""
        self._registered(stream, draft, 0, self.stored(draft.name))

    def check_move(self, name: str, action: Action, condition: Condition = ANY) -> RegisteredOperator:
        """Return an operator. If ``move`` would raise an error for the action now, raise this error instead."""
        record = self.require(self.stored(name), name, condition)
        moved(record, action)
        return record

    def move(
        self,
        name: str,
        action: Action,
        condition: Condition = ANY,
        now_us: int | None = None,
        *,
        stops: bool = False,
    ) -> tuple[RegisteredOperator, bool]:
        """Change the state of an operator by an action. Return the operator after the call, and whether it changed.

        A suspended operator is resumed as its next version. This version is registered at ``now_us``, by default at the
        time of the former version. If ``stops``, a pause takes effect before the backlog, so that the operator receives
        no event of the backlog. This holds even if the operator was paused already.

        A draft must be checked before ``activate`` starts it. If the operator is a draft, because it was deleted and
        registered again since the caller read it as active, raise ``RegistryContended``.
        """

        def change(stored: RegisteredOperator | None) -> Change | None:
            record = self.require(stored, name, condition)
            if action == "activate" and record.state == "draft":
                raise RegistryContended.over(f"{self.one} {name!r}")
            if stops and action == "pause":
                paused = moved(record, action, now_us)
                return replace(self._change(paused, self._pause(name)), stops=True)
            return self._moved_change(record, action, now_us)

        return self.apply(name, change)

    def activate(
        self, draft: RegisteredOperator, required: Callable[[], Checks], now_us: int, condition: Condition = ANY
    ) -> tuple[RegisteredOperator, bool]:
        """Activate a draft that was checked. ``required`` has the same meaning as in ``OperatorDraft``.

        Return the operator after the call, and True. If the stored operator is no longer this draft, raise
        ``RegistryContended``.
        """

        def change(stored: RegisteredOperator | None) -> Change | None:
            if self.require(stored, draft.name, condition) != draft:
                raise RegistryContended.over(f"{self.one} {draft.name!r}")
            checks = required()
            change = self._moved_change(draft, "activate", now_us)
            return None if change is None else replace(change, checks=checks, commands=counted(checks))

        return self.apply(draft.name, change)

    def grade(self, name: str, severity: Severity, condition: Condition = ANY) -> RegisteredOperator:
        """Change the severity of an operator's future alerts, without a new version."""

        def change(stored: RegisteredOperator | None) -> Change | None:
            record = self.require(stored, name, condition)
            return None if record.severity == severity else self._change(replace(record, severity=severity), None)

        return self.apply(name, change)[0]

    def suspend(self, name: str, suspension: Mapping[str, Any]) -> bool:
        """Suspend an operator in every shard, because a shard reports that the operator costs too much work.

        ``suspension`` is the report, with the operator's ``version``, the ``shard`` and the reason. The reporting shard
        has stopped the operator already. In the other shards, the operator receives no more events of the backlog.

        Return whether this report caused the suspension. The report has no effect if another shard reported first, if
        the operator has another version, or if the operator is deleted or not active.
        """

        def change(stored: RegisteredOperator | None) -> Change | None:
            record = self.require(stored, name)
            if record.version != suspension["version"] or record.state != "active":
                return None
            change = self._change(replace(record, suspension=suspension), self._pause(name))
            return replace(change, stops=True, spared=suspension.get("shard"))

        try:
            record, _ = self.apply(name, change)
        except NotFound:
            return False
        return record.suspension == suspension

    def remove(self, name: str, condition: Condition = ANY, complete: Callable[[Any], object] = lambda _: None) -> None:
        """Delete an operator. Its results are retained.

        After the deletion, ``complete`` is called with the record. If the operator was deleted before, its deletion may
        have been interrupted. Therefore ``complete`` is called again, and then the error of ``unknown`` is raised.
        """

        def change(stored: RegisteredOperator | None) -> Change | None:
            record = self.require(stored, name, condition)
            return self._change(replace(record, is_active=False), self._off(name) if record.state == "active" else None)

        try:
            deleted = self.apply(name, change)[0]
        except NotFound:
            if (former := self.stored(name)) is not None and not former.is_active:
                complete(former)
            raise
        complete(deleted)

    def unknown(self, name: str, reason: str = "", **details: Any) -> NotFound:
        return UnknownOperator(reason or f"there is no {self._kind} {name!r}", kind=self._kind, name=name)

    def _on(self, record: RegisteredOperator, start: Start) -> ControlRecord:
        return OperatorOn(record.definition, start)

    def _pause(self, name: str) -> ControlRecord:
        return OperatorPause(self._kind, name)

    def _off(self, name: str) -> ControlRecord:
        return OperatorOff(self._kind, name)

    def _registered(
        self, stream: str, draft: OperatorDraft, now_us: int, stored: RegisteredOperator | None
    ) -> Change | None:
        current = stored if stored is not None and stored.is_active else None
        draft.condition.check_record(current)
        if current is not None:
            self._check_same_stream(current, stream)
            require_writable(current, draft.state)
            is_same = draft.is_registered_as(current)
            if draft.creates and not (is_same and draft.severity in (None, current.severity)):
                raise OperatorExists(
                    f"the {current.kind} {current.name!r} exists with other members; change it "
                    f"(PUT /v1/{current.kind}s/{current.name}), or use another name",
                    kind=current.kind,
                    name=current.name,
                    version=current.version,
                )
            if is_same:
                return self._same_change(current, draft)
        record = replace(
            draft.record(stream, 1 if stored is None else stored.version + 1, now_us).after(stored),
            severity=draft.severity or (USUAL_SEVERITY if current is None else current.severity),
            stage="draft" if draft.state == "draft" else "running",
            is_paused=draft.state == "paused",
        )
        running = current if current is not None and current.is_running else None
        start = self._start(draft, running)
        record = begun(record, running if start == "keep" else None)
        return self._change(record, self._first_control(record, start, running), running)

    def _first_control(
        self, record: RegisteredOperator, start: Start, running: RegisteredOperator | None
    ) -> ControlRecord | None:
        """Return the control record that starts an active version, or that pauses the active former version."""
        if record.state == "active":
            return self._on(record, start)
        return self._pause(record.name) if running is not None and running.state == "active" else None

    def _elsewhere(self, message: str, record: RegisteredOperator) -> ServiceError:
        return OperatorOnOtherStream(message, kind=self._kind, name=record.name, stream=record.stream)

    def _parts(
        self, record: RegisteredOperator, before: RegisteredOperator | None, control: ControlRecord | None
    ) -> list[LogChange]:
        """Return the changes of the event log for the inner operators of a changed operator.

        ``control`` is the operator's control record. Each inner operator gets a record of the same kind. An inner
        operator that the version ``before`` lacks does not run yet, so it only gets a record that starts it. A running
        inner operator that the new version lacks is removed.
        """
        is_seeing = record.is_active and record.state == "active"
        parts = {(part.kind, part.name, part.stream): part for part in record.parts}
        former_parts = parts if before is None else {(part.kind, part.name, part.stream): part for part in before.parts}
        was_seeing = before is not None and before.state == "active"
        changes = [
            _part_change(part, OperatorOff(part.kind, part.name) if was_seeing else None, "")
            for place, part in former_parts.items()
            if place not in parts
        ]
        for place, part in parts.items():
            is_meant = place in former_parts or isinstance(control, OperatorOn)
            part_control = _part_control(control, part, record.version) if is_meant else None
            changes.append(_part_change(part, part_control, part.key * is_seeing))
        return changes

    def _check_same_stream(self, record: RegisteredOperator, stream: str) -> None:
        if record.stream != stream:
            message = (
                f"{self.one} {record.name!r} is registered on the stream {record.stream!r}; delete it there "
                "first, or give this one another name"
            )
            raise self._elsewhere(message, record)

    def _start(self, draft: OperatorDraft, running: RegisteredOperator | None) -> Start:
        if running is None or (running.state, draft.state) != ("active", "active"):
            return "fresh"
        if (start := draft.start_after(running)) == "fresh":
            return "fresh"
        if start == "migrate" and running.route != draft.route:
            raise MigrationRefused(
                f"{self.one} {draft.name!r} is matched by {_key_in_words(running.route)} and would be "
                f"matched by {_key_in_words(draft.route)}, so its partial matches cannot be continued; register it "
                "with 'start': 'fresh'",
                pattern=draft.name,
            )
        return start

    def _same_change(self, record: RegisteredOperator, draft: OperatorDraft) -> Change | None:
        graded = replace(record, severity=draft.severity or record.severity)
        if record.state == "draft" and draft.state == "paused":
            return self._change(replace(graded, stage="running", is_paused=True), None)
        if record.state == "draft" and draft.state == "active":
            return self._moved_change(graded, "activate")
        if draft.state == "paused" and record.state != "paused":
            return self._moved_change(graded, "pause")
        return None if graded == record else self._change(graded, None)  # the log does not have the severity

    def _moved_change(self, record: RegisteredOperator, action: Action, now_us: int | None = None) -> Change | None:
        after = moved(record, action, now_us)
        if after == record:
            return None
        control: ControlRecord | None
        if after.state == "active":
            after = begun(after, None, now_us)
            control = self._on(after, "fresh")
        elif after.state == "paused":
            control = self._pause(after.name)
        else:
            control = self._off(after.name) if record.state == "active" else None
        return self._change(after, control)

    def _change(
        self, record: RegisteredOperator, control: ControlRecord | None, before: RegisteredOperator | None = None
    ) -> Change:
        """Return the change that stores an operator and appends its control records.

        The operator's route is stored only while the operator receives events.
        """
        is_seeing = record.is_active and record.state == "active"
        user, route = self.prefix + record.name, record.route if is_seeing else ""
        log_change = LogChange(stream=record.stream, control=control, user=user, route=route)
        return Change(
            record=encode(**record.tagged()),
            version=record.version,
            log=(log_change, *self._parts(record, before, control)),
        )


class PatternOperators(Operators):
    """The registered patterns. ``budget`` limits the work of each pattern that this store registers or resumes."""

    key = PATTERNS_KEY
    versions_key = PREFIX + "pattern-versions"

    def __init__(self, book: RecordBook, budget: WorkBudget) -> None:
        super().__init__(book, PATTERN)
        self._budget = budget
        self.prefix = ""

    def read(self, body: bytes, name: str) -> RegisteredOperator:
        return read_pattern(body, name)

    def unknown(self, name: str, reason: str = "", **details: Any) -> NotFound:
        message = reason or f"there is no pattern {name!r}"
        return UnknownPatternName(f"{message}; GET /v1/patterns lists them", pattern=name)

    def _on(self, record: RegisteredOperator, start: Start) -> ControlRecord:
        return replace(record.fresh_start, start=start, budget=self._budget)

    def _pause(self, name: str) -> ControlRecord:
        return PatternPause(name)

    def _off(self, name: str) -> ControlRecord:
        return PatternOff(name)

    def _elsewhere(self, message: str, record: RegisteredOperator) -> ServiceError:
        return PatternOnOtherStream(message, pattern=record.name, stream=record.stream)

    def _parts(
        self, record: RegisteredOperator, before: RegisteredOperator | None, control: ControlRecord | None
    ) -> list[LogChange]:
        """Return the control records that start a pattern's inner operators, or none if the pattern is not started.

        A pause of the pattern does not pause inner operators, because they may have alerts left to process (ADR 72). A
        removed inner operator is not stopped, because the next version continues or closes open incidents (ADR 75).
        """
        parts = record.parts if isinstance(control, PatternOn) else ()
        return [_part_change(part, OperatorOn(part.definition(record.version), "keep"), "") for part in parts]


def _part_change(part: OperatorPart, control: ControlRecord | None, route: str) -> LogChange:
    return LogChange(stream=part.stream, control=control, user=f"{part.kind}/{part.name}", route=route)


def _part_control(control: ControlRecord | None, part: OperatorPart, version: int) -> ControlRecord | None:
    if isinstance(control, OperatorOn):
        return OperatorOn(part.definition(version), control.start)
    if isinstance(control, OperatorPause | OperatorOff):
        return type(control)(part.kind, part.name)
    return None


def _key_in_words(route: str) -> str:
    return f"the further key {route!r}" if route else "the correlation key"
