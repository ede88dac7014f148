"""The operators of one kind: registered, looked up, moved from state to state, deleted; with all their versions.

All kinds have the same life cycle. Their differences are in a ``Form``: how a record is read, which control records
it gives, and the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from service.errors import MigrationRefused, NotFound, OperatorExists, ServiceError
from service.stores.conditions import ANY, Condition
from service.stores.records import encode
from service.stores.registry.changes import Change, PartChange, RecordBook, version_of
from service.stores.registry.life_cycle import Action, begun, moved, require_writable
from service.stores.registry.registered import OperatorDraft, RegisteredOperator
from service.stores.severities import USUAL_SEVERITY, Severity
from streams import ControlRecord, Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form of one kind of operators.

    Attributes:
        key: Redis key of the current records, by name.
        prefix: Prefix of the fields, if kinds share a hash.
        read: Reads a stored record, the JSON form of ``RegisteredOperator.tagged``.
        on: The control record by which an operator runs.
        pause: The control record by which it sees no events for the time being.
        unknown: The error for an unknown operator; takes a text and its name.
        elsewhere: The error for an operator on another stream; takes a text, its name and its stream.
        parts: The changes of an operator's parts; takes its record, the record before, and its own control record.
    """

    one: str
    key: str
    versions_key: str
    prefix: str
    read: Callable[[bytes, str], RegisteredOperator]
    on: Callable[[RegisteredOperator, Start], ControlRecord]
    pause: Callable[[str], ControlRecord]
    off: Callable[[str], ControlRecord]
    unknown: Callable[[str, str], NotFound]
    elsewhere: Callable[[str, str, str], ServiceError]
    parts: Callable[[RegisteredOperator, RegisteredOperator | None, ControlRecord | None], tuple[PartChange, ...]] = (
        lambda *_: ()
    )


class Operators:
    """The operators of one kind; ``book`` writes records and control records together."""

    def __init__(self, book: RecordBook, form: Form) -> None:
        self._book = book
        self._form: Form = form

    def put(self, stream: str, draft: OperatorDraft, now_us: int) -> tuple[RegisteredOperator, bool]:
        """Register an operator: a different one is the next version, the same again changes nothing.

        Returns the operator after the call, and whether it changed.

        The next version of a paused operator is active. If a draft is sent again as an operator to run, it is
        activated. Another severity makes no next version: the operator continues. Refused as a ``Conflict``: a name
        taken on another stream, or at all where the draft only creates, a state that permits no other version, and a
        version that is to finish its partial matches but listens by another key.
        """

        def change(current: bytes | None) -> Change | None:
            known = None if current is None else self._form.read(current, draft.name)
            there = known if known is not None and known.is_active else None
            draft.condition.check_record(there)
            if there is not None:
                self._check_same_stream(there, stream)
                require_writable(there, is_draft=draft.is_draft)
                is_same = draft.is_registered_as(there)
                if draft.creates and not (is_same and draft.severity in (None, there.severity)):
                    raise OperatorExists(
                        f"the {there.kind} {there.name!r} exists with other members; change it "
                        f"(PUT /v1/{there.kind}s/{there.name}), or use another name",
                        kind=there.kind,
                        name=there.name,
                        version=there.version,
                    )
                if is_same:
                    return self._same_change(there, draft)
            fresh = replace(
                draft.record(stream, 1 if known is None else known.version + 1, now_us),
                severity=draft.severity or (USUAL_SEVERITY if there is None else there.severity),
                stage="draft" if draft.is_draft else "running",
            )
            running = there if there is not None and there.is_running else None
            start = self._start(draft, running)
            fresh = begun(fresh, running if start == "keep" else None)
            return self._change(fresh, None if draft.is_draft else self._form.on(fresh, start), running)

        return self._apply(draft.name, change)

    def move(
        self,
        name: str,
        action: Action,
        condition: Condition = ANY,
        now_us: int | None = None,
        *,
        stops: bool = False,
    ) -> tuple[RegisteredOperator, bool]:
        """Move an operator from its state to another; a suspended operator is resumed as its next version.

        ``now_us`` is when a version that begins by the action is registered; None: as the version before. With
        ``stops`` a pause takes effect before the backlog, also if the operator is paused already. Returns the operator
        after the call, and whether it changed.
        """

        def change(current: bytes | None) -> Change | None:
            known = self.existing(current, name)
            condition.check_record(known)
            if stops and action == "pause":
                paused = moved(known, action, now_us)
                return replace(self._change(paused, self._form.pause(name)), stops=True)
            return self._moved_change(known, action, now_us)

        return self._apply(name, change)

    def grade(self, name: str, severity: Severity, condition: Condition = ANY) -> RegisteredOperator:
        """Change the severity of an operator's new alerts; the operator continues."""

        def change(current: bytes | None) -> Change | None:
            known = self.existing(current, name)
            condition.check_record(known)
            return None if known.severity == severity else self._change(replace(known, severity=severity), None)

        return self._apply(name, change)[0]

    def suspend(self, name: str, suspension: Mapping[str, Any]) -> bool:
        """Suspend an operator in every shard after one shard reports that its version cost too much work.

        The other shards stop it before their backlog. The reporting shard has stopped it at the position of its report,
        which has ``version`` and the reason.

        Returns whether it is suspended for exactly this report: not if another shard reported it before, or if the
        operator has another version, is deleted, paused or retired.
        """

        def change(current: bytes | None) -> Change | None:
            known = self.existing(current, name)
            if known.version != suspension["version"] or known.state != "active":
                return None
            change = self._change(replace(known, suspension=suspension), self._form.pause(name))
            return replace(change, stops=True, spared=suspension.get("shard"))

        try:
            record, _ = self._apply(name, change)
        except NotFound:
            return False
        return record.suspension == suspension

    def remove(self, name: str, condition: Condition = ANY) -> None:
        """Delete an operator; its results are kept."""

        def change(current: bytes | None) -> Change | None:
            known = self.existing(current, name)
            condition.check_record(known)
            return self._change(replace(known, is_active=False), self._form.off(name) if known.is_running else None)

        self._apply(name, change)

    def get(self, name: str) -> RegisteredOperator:
        """An operator that is not deleted."""
        return self.existing(self._book.get(self._form.key, self._form.prefix + name), name)

    def version(self, name: str, version: int | None = None) -> RegisteredOperator:
        """A version of an operator that is not deleted, by default the current one."""
        current = self.get(name)
        if version in (None, current.version):
            return current
        field = version_of(self._form.prefix + name, version or current.version)
        body = self._book.get(self._form.versions_key, field)
        if body is None:
            message = f"the {self._form.one} {name!r} has no version {version}; it has 1 to {current.version}"
            raise self._form.unknown(message, name)
        return self._form.read(body, name)

    def versions(self, name: str) -> list[RegisteredOperator]:
        """Every version of an operator, the current one last."""
        last, field = self.get(name).version, self._form.prefix + name
        return [self._form.read(body, name) for body in self._book.versions(self._form.versions_key, field, last)]

    def all(self, stream: str | None = None) -> list[RegisteredOperator]:
        """All operators that are not deleted, in any state, by name."""
        return [record for record in self.ever() if record.is_active and stream in (None, record.stream)]

    def ever(self) -> list[RegisteredOperator]:
        """All operators by name, including deleted ones."""
        records = self._book.all(self._form.key)
        return [self._form.read(body, field) for field, body in records if field.startswith(self._form.prefix)]

    def _apply(self, name: str, change: Callable[[bytes | None], Change | None]) -> tuple[RegisteredOperator, bool]:
        record, is_new = self._book.apply(self._form.key, self._form.versions_key, self._form.prefix + name, change)
        return self._form.read(record, name), is_new

    def existing(self, body: bytes | None, name: str) -> RegisteredOperator:
        """The operator of a record; raises if there is none, or it is deleted."""
        record = None if body is None else self._form.read(body, name)
        if record is None or not record.is_active:
            raise self._form.unknown(f"there is no {self._form.one} {name!r}", name)
        return record

    def _check_same_stream(self, there: RegisteredOperator, stream: str) -> None:
        if there.stream != stream:
            message = (
                f"the {self._form.one} {there.name!r} is registered on the stream {there.stream!r}; delete it there "
                "first, or give this one another name"
            )
            raise self._form.elsewhere(message, there.name, there.stream)

    def _start(self, draft: OperatorDraft, running: RegisteredOperator | None) -> Start:
        """The start of a draft as it takes effect: ``fresh`` if there is no active version to continue."""
        if running is None or running.state != "active" or (start := draft.start_after(running)) == "fresh":
            return "fresh"
        if start == "migrate" and running.route != draft.route:
            raise MigrationRefused(
                f"the {self._form.one} {draft.name!r} is matched by {_named(running.route)} and would be "
                f"matched by {_named(draft.route)}, so its partial matches cannot be continued; register it with "
                "'start': 'fresh'",
                pattern=draft.name,
            )
        return start

    def _same_change(self, there: RegisteredOperator, draft: OperatorDraft) -> Change | None:
        """The change if an operator is sent again unchanged: of its severity, or the activation of a draft."""
        graded = replace(there, severity=draft.severity or there.severity)
        if there.state == "draft" and not draft.is_draft:
            return self._moved_change(graded, "activate")
        return None if graded == there else self._change(graded, None)  # the log need not know

    def _moved_change(self, record: RegisteredOperator, action: Action, now_us: int | None = None) -> Change | None:
        """The change that an action makes; None if the operator is in the resulting state already."""
        after = moved(record, action, now_us)
        if after == record:
            return None
        control: ControlRecord | None
        if after.state == "active":
            after = begun(after, None, now_us)
            control = self._form.on(after, "fresh")
        elif after.state == "paused":
            control = self._form.pause(after.name)
        else:
            control = self._form.off(after.name) if record.state == "active" else None
        return self._change(after, control)

    def _change(
        self, record: RegisteredOperator, control: ControlRecord | None, before: RegisteredOperator | None = None
    ) -> Change:
        """The change of an operator's record; the operator uses its route only while it sees events."""
        is_seeing = record.is_active and record.state == "active"
        return Change(
            record=encode(**record.tagged()),
            version=record.version,
            stream=record.stream,
            control=control,
            route=record.route if is_seeing else "",
            parts=self._form.parts(record, before, control),
        )


def _named(route: str) -> str:
    return f"the further key {route!r}" if route else "the correlation key"
