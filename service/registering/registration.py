"""Registration of streams, constraint sets and patterns, independent of HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import Any

from constraints import ConstraintSet, QueryCheck
from nfa import (
    Pattern,
    PatternRefused,
    describe_pattern,
    key_notices,
    lookups_in,
    parse_pattern,
    pattern_from_json,
    require_rows,
)
from service.errors import PatternTooLong, StreamInUse, UnknownStream
from service.latest_used import LatestUsed
from service.registering.constraint_sets import ConstraintSets
from service.registering.derivations import Derivations, remove_inner
from service.registering.incidents import IncidentLibrary
from service.registering.inspection import PatternInspection, inspect_pattern, is_explained
from service.registering.known_types import known_types
from service.registering.on_stream import OnStream, StreamRules
from service.registering.reports import PatternReport, pattern_warnings, resolving_nothing
from service.registering.requirements import Requirements
from service.registering.strangers import OF_STREAM, misspelt_types, require_declared, unfollowed_types
from service.registering.tables import require_lookups, tables_for
from service.runtime import Stores
from service.settings import Settings
from service.stores import (
    ANY,
    Action,
    Checks,
    Condition,
    ConstraintsDraft,
    OperatorDraft,
    RegisteredConstraints,
    RegisteredPattern,
    StreamRecord,
    StreamUse,
    pattern_parts,
    tag_of,
)
from shards import SUPPRESSION, alerts_stream, fed_stream, read_quiet
from streams import Clock, StreamDeclaration, WorkBudget
from streams.tables import Tables

_INSPECTIONS_KEPT = 16


class Registration:
    """Declares streams, and registers and analyses patterns."""

    def __init__(self, stores: Stores, settings: Settings, clock: Clock) -> None:
        self._stores = stores
        self._settings = settings
        self._clock = clock
        self._inspections: LatestUsed[tuple[str, ...], PatternInspection] = LatestUsed(_INSPECTIONS_KEPT)
        self._lock = Lock()
        self._derivations = Derivations(stores.registry)
        self.constraint_sets = ConstraintSets(stores, settings, clock)

    @property
    def budget(self) -> WorkBudget:
        """The work budget of newly registered patterns."""
        return self._settings.pattern_work.budget

    def declare_stream(
        self, declaration: StreamDeclaration, condition: Condition = ANY, *, is_checked: bool | None = None
    ) -> bool:
        """Declare a stream, and return whether it is new. Raises ``StreamExists`` if its stored declaration differs."""
        return self._stores.registry.declare_stream(declaration, condition, is_checked=is_checked)

    def change_stream(
        self, name: str, members: Mapping[str, Any], condition: Condition = ANY, *, is_checked: bool | None = None
    ) -> StreamRecord:
        """Change members of a declaration (``streams.CHANGEABLE``), with effect on later log entries.

        ``is_checked`` turns schema checks on or off. If the end events change, the next version of the stream's
        constraint set is registered in the same step.
        """

        def changed(
            before: StreamDeclaration, rules: RegisteredConstraints | None
        ) -> tuple[StreamDeclaration, ConstraintsDraft | None]:
            after = replace(before, **members)
            has_other_ends = set(after.end_events) != set(before.end_events)
            draft = self.constraint_sets.redrafted(after, rules) if has_other_ends and rules is not None else None
            if has_other_ends or after.idle_timeout is None:
                effective = draft or rules
                self._check_ends(after, None if effective is None else effective.document)
            return after, draft

        now_us = self._clock.now_us()
        return self._stores.registry.change_stream(name, changed, now_us, condition, is_checked=is_checked)

    def type_warnings(self, stream: str) -> list[str]:
        """Return warnings about end events of a stream and types of its constraints that are probably misspelt.

        Known types are those of its declaration, constraints, workflow and schemas, and of its newest events.
        """
        declaration = self._stores.registry.stream(stream)
        constraint_set = self._rules(declaration).constraint_set
        return misspelt_types(declaration, constraint_set, known_types(self._stores, stream), OF_STREAM)

    def remove_stream(self, name: str, condition: Condition = ANY, *, is_cascading: bool = False) -> list[StreamUse]:
        """Remove a stream at the current end of the log, together with its hourly counts. Its results are kept.

        The resources of the stream, such as patterns, are removed too, and are returned. Open incidents of its patterns
        are closed. Raises ``StreamInUse`` if a resource prevents the removal. With ``is_cascading``, only operators
        that feed the stream prevent it.

        If a removal was interrupted, the next call completes it and then raises ``UnknownStream``.
        """
        try:
            uses = self._stores.registry.removal.remove(name, condition, is_cascading=is_cascading)
        except UnknownStream:
            self._complete_removal(name)
            raise
        self._complete_removal(name)
        return uses

    def read_pattern(self, text: str | None, definition: object) -> Pattern:
        """Read a pattern from its text or, if this is None, from its JSON form. The result always has a text."""
        if text is not None:
            self._check_length(text)
            return parse_pattern(text)
        pattern = pattern_from_json(definition)
        pattern = replace(pattern, text=pattern.text or describe_pattern(pattern))
        self._check_length(pattern.text)
        return pattern

    def pattern(self, name: str) -> tuple[PatternReport, PatternInspection]:
        record = self._stores.registry.pattern(name)
        on_stream = self._on_stream(record)
        key = record.text, str(record.is_guarded), tag_of(on_stream.rules)
        with self._lock:
            inspection = self._inspections.get(key)
        inspection = inspection or _inspected(on_stream)
        with self._lock:
            self._inspections[key] = inspection
        return self._reported(record, on_stream, inspection.check, is_new=False), inspection

    def move_pattern(
        self, name: str, action: Action, condition: Condition = ANY, *, stops: bool = False
    ) -> PatternReport:
        """Activate, pause, resume or retire a pattern, with effect on later log entries.

        With ``stops``, a pause skips the backlog. A draft is activated only if it could be registered now. So
        ``UnsatisfiablePattern`` is raised if the draft cannot match under the stream's constraints.
        """
        patterns = self._stores.registry.pattern_operators
        if action == "activate":
            feeds, record = self._stores.registry.feeds_check(), patterns.check_move(name, action, condition)
            if record.state == "draft":
                required = self._activating(record, feeds)
                return self._report(*patterns.activate(record, required, self._clock.now_us(), condition))
        return self._report(*patterns.move(name, action, condition, self._clock.now_us(), stops=stops))

    def _activating(self, draft: RegisteredPattern, feeds: Checks) -> Requirements:
        """Check a draft as ``register`` does, declare the streams that it feeds, and return its requirements."""
        on_stream = self._on_stream(draft)
        self._checked(on_stream)
        required = self._required(on_stream, draft, feeds)
        required.recheck()
        self._derivations.declare_fed(draft.feeders)
        return required

    def _required(
        self, on_stream: OnStream, record: RegisteredPattern, feeds: Checks, *, is_stored_only: bool = False
    ) -> Requirements:
        pattern, rules = on_stream.pattern, on_stream.rules

        def recheck() -> None:
            self._derivations.check(pattern, record.stream)
            if SUPPRESSION in record.body:
                self._derivations.check_operator("pattern", record.name, record.feeders)
            self._check_rows(pattern)

        return Requirements(
            stores=self._stores,
            feeds=feeds,
            declarations=[rules.declaration],
            documents={rules.declaration.name: rules.document},
            feeders=record.feeders,
            is_stored_only=is_stored_only,
            lookups=lookups_in(pattern),
            recheck=recheck,
        )

    def delete_pattern(self, name: str, condition: Condition = ANY) -> None:
        """Delete a pattern and its inner streams, and close its incidents. Stored alerts are kept.

        If the process stops after the first write, incidents remain open and inner streams remain. The next call then
        completes the deletion and raises ``UnknownPatternName``.
        """
        self._stores.registry.pattern_operators.remove(name, condition, self._end_alerts)

    def _complete_removal(self, stream: str) -> None:
        if self._stores.registry.removal.is_removed(stream):
            self._stores.derived.forget(stream)
            self._stores.hours.forget(stream)
        self._end_alerts_on(stream)

    def _end_alerts_on(self, stream: str) -> None:
        for record in self._stores.registry.pattern_operators.ever():
            if record.stream == stream and not record.is_active:
                self._end_alerts(record)

    def _end_alerts(self, deleted: RegisteredPattern) -> None:
        with suppress(UnknownStream):  # the deletion is already complete
            IncidentLibrary(self._stores, self._clock).close_all(deleted.name)
        versions = self._stores.registry.pattern_operators.versions_until(deleted.name, deleted.version)
        fed = {fed_stream(version.name, version.body.get(SUPPRESSION) or {}) for version in versions}
        remove_inner(self._stores, {alerts_stream(deleted.name), *fed})

    def _check_length(self, text: str) -> None:
        limit = self._settings.limits.max_pattern_chars
        if len(text) > limit:
            raise PatternTooLong(f"the pattern has {len(text)} characters; at most {limit} are read", limit=limit)

    def check_pattern(self, stream: str, pattern: Pattern, *, is_guarded: bool) -> tuple[str, ...]:
        """Check that a pattern can be matched on a stream, as ``register`` does. Returns warnings in words."""
        rules = self._rules(self._stores.registry.stream(stream))
        return self._checked(rules.on_stream(pattern, is_guarded=is_guarded))

    def inspect(self, stream: str, pattern: Pattern, *, is_guarded: bool) -> PatternInspection:
        """Analyse a pattern, registered or not, under the constraints of a stream."""
        rules = self._rules(self._stores.registry.stream(stream))
        return _inspected(rules.on_stream(pattern, is_guarded=is_guarded))

    def _checked(self, on_stream: OnStream) -> tuple[str, ...]:
        pattern, declaration = on_stream.pattern, on_stream.rules.declaration
        require_declared(pattern, declaration)
        require_lookups(self._stores, lookups_in(pattern))
        tables = self._check_rows(pattern)
        self._derivations.check(pattern, declaration.name)
        on_stream.ends.check(pattern)
        on_stream.check.require_satisfiable()
        return self._warnings(on_stream, on_stream.check, tables)

    def _warnings(self, on_stream: OnStream, check: QueryCheck, tables: Tables) -> tuple[str, ...]:
        pattern = on_stream.pattern
        return (
            *pattern_warnings(on_stream, check),
            *(notice.placed for notice in key_notices(pattern, tables)),
            *self._unfollowed_types(pattern, on_stream),
            *self._derivations.unfed_types(pattern, on_stream.rules.declaration),
        )

    def _unfollowed_types(self, pattern: Pattern, on_stream: OnStream) -> list[str]:
        """Return warnings about types of a pattern that are probably misspelt. Events are read only if needed."""
        stream, constraint_set = on_stream.rules.declaration.name, on_stream.constraint_set
        warnings = unfollowed_types(pattern, constraint_set, self._stores.registry.event_types.all(stream))
        return warnings and unfollowed_types(pattern, constraint_set, known_types(self._stores, stream))

    def _check_rows(self, pattern: Pattern) -> Tables:
        """Check the tables whose rows a pattern reads one by one, and return them."""
        tables = self._tables_of(pattern)
        require_rows(pattern, tables)
        return tables

    def _tables_of(self, pattern: Pattern) -> Tables:
        return Tables() if pattern.rows is None else tables_for(self._stores, lookups_in(pattern))

    def register(self, stream: str, pattern: Pattern, requested: OperatorDraft) -> PatternReport:
        """Register a pattern or its next version on a stream, under the name in its text.

        Constraints terminate no partial match of an unguarded pattern, so such a pattern can find traces that deviate.
        Without ``severity``, a pattern keeps its severity, and a new pattern gets ``medium``.
        """
        feeds, declaration = self._stores.registry.feeds_check(), self._stores.registry.stream(stream)
        on_stream = self._rules(declaration).on_stream(pattern, is_guarded=bool(requested.body["is_guarded"]))
        warnings = self._checked(on_stream)
        into = "" if pattern.into is None else pattern.into.stream
        suppression = read_quiet(requested.body, on_stream.routed)
        body = {name: value for name, value in requested.body.items() if name in ("text", "is_guarded")}
        if suppression is not None:
            body[SUPPRESSION], into = suppression, fed_stream(pattern.name, suppression)
        draft = replace(requested, name=pattern.name, route=on_stream.routed.route, into=into, body=body)
        unversioned = draft.record(declaration.name, 0, 0)
        draft = replace(draft, parts=pattern_parts(unversioned.definition))
        if suppression is not None:
            self._derivations.check_operator("pattern", draft.name, unversioned.feeders)
            warnings = (*warnings, *self._resolving_nothing(suppression, declaration.name))
        self._derivations.declare_fed_by(declaration.name, draft)
        required = self._required(on_stream, unversioned, feeds, is_stored_only=draft.state == "draft")
        draft = replace(draft, required=required)
        record, is_new = self._stores.registry.put_pattern(declaration.name, draft, self._clock.now_us())
        return PatternReport(pattern=record, is_new=is_new, parsed=pattern, warnings=warnings)

    def _resolving_nothing(
        self, suppression: Mapping[str, Any] | None, stream: str, *, is_within_stream: bool = False
    ) -> tuple[str, ...]:
        """Return a warning if the member ``resolves`` of a pattern of a stream can close no incidents.

        If ``is_within_stream``, nothing is returned about patterns of other streams, which the caller may not read.
        """
        if suppression is None or "resolves" not in suppression:
            return ()
        opens = {record.name: record.body.get(SUPPRESSION) or {} for record in self._stores.registry.patterns(stream)}
        resolved = self._stores.registry.pattern_operators.find(suppression["resolves"])
        if resolved is not None and resolved.name not in opens:
            if is_within_stream:
                return ()
            opens[resolved.name] = resolved.body.get(SUPPRESSION) or {}
        return resolving_nothing(suppression, opens, "is registered, so no incident is closed yet")

    def _report(self, record: RegisteredPattern, is_new: bool) -> PatternReport:
        on_stream = self._on_stream(record)
        return self._reported(record, on_stream, on_stream.check, is_new=is_new)

    def _reported(
        self, record: RegisteredPattern, on_stream: OnStream, check: QueryCheck, *, is_new: bool
    ) -> PatternReport:
        """Return the report on a stored pattern. The tables of a retired pattern may not exist any more."""
        if record.state == "retired":
            warnings = pattern_warnings(on_stream, check)
        else:
            warnings = self._warnings(on_stream, check, self._tables_of(on_stream.pattern))
            suppression = record.body.get(SUPPRESSION)
            warnings += self._resolving_nothing(suppression, record.stream, is_within_stream=True)
        return PatternReport(pattern=record, is_new=is_new, parsed=on_stream.pattern, warnings=warnings)

    def _on_stream(self, record: RegisteredPattern) -> OnStream:
        rules = self._rules(self._stores.registry.stream(record.stream))
        return rules.on_stream(parse_pattern(record.text), is_guarded=record.is_guarded)

    def _rules(self, declaration: StreamDeclaration) -> StreamRules:
        record = self._stores.registry.constraints.find(declaration.name)
        return StreamRules(declaration=declaration, document=None if record is None else record.document)

    def _check_ends(self, declaration: StreamDeclaration, document: Mapping[str, Any] | None) -> None:
        """Raise ``StreamInUse`` if a pattern needs the end of traces, but traces would no longer end."""
        rules = StreamRules(declaration=declaration, document=document)
        for record in self._stores.registry.patterns(declaration.name):
            if record.state == "retired":
                continue
            on_stream = rules.on_stream(parse_pattern(record.text), is_guarded=record.is_guarded)
            try:
                on_stream.ends.check(on_stream.pattern)
            except PatternRefused as error:
                raise StreamInUse(
                    f"the pattern {record.name!r} needs the ends of traces, and the stream {declaration.name!r} would "
                    f"have none: {error.message}",
                    stream=declaration.name,
                    uses=[{"kind": "pattern", "name": record.name, "state": record.state}],
                ) from error

    def constraint_set(self, declaration: StreamDeclaration, *, route: str, is_guarded: bool) -> ConstraintSet:
        """Return the constraints that a pattern can take for granted, as ``StreamRules.relied_on`` does."""
        return self._rules(declaration).relied_on(route, is_guarded=is_guarded)


def _inspected(on_stream: OnStream) -> PatternInspection:
    is_ended = on_stream.is_pruned and is_explained(on_stream.query)
    return inspect_pattern(on_stream.query, on_stream.constraint_set, is_ended=is_ended)
