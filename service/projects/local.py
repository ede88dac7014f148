"""A project that runs in this process, without a service, over a finite set of events."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any, cast

from constraints import ConstraintSet, UnsatisfiablePattern, parse_constraints, to_document
from nfa import Pattern, key_notices, null_notices, parse_pattern
from service.errors import ProjectRefused
from service.projects.documents import Document
from service.projects.operators import Operators, own_members
from service.projects.planning import wanted_of
from service.projects.resources import Form, Wanted
from service.projects.streams import ConstraintSets, Following, Streams, Workflows
from service.projects.tables import Calendars, ReferenceTables, table_of
from service.registering.joining import Derived, effective_set
from service.registering.on_stream import OnStream, StreamRules
from service.registering.reports import resolving_nothing
from service.registering.strangers import (
    constrained_types,
    misspelt_types,
    strange_names,
    strangers,
    types_of,
    unfed_types,
)
from service.runs import EVENTS, InlineRun, Results, RunPlan
from shards import (
    KINDS_BY_NAME,
    SUPPRESSION,
    DocumentKind,
    NameRead,
    PatternKind,
    RoundPlan,
    RoutedPattern,
    require_final,
    routed,
    run_exercises,
)
from streams import (
    Definition,
    Event,
    EventBatch,
    ForestallError,
    Punctuation,
    StreamDeclaration,
    did_you_mean,
    parse_time,
)
from streams.tables import Tables, require_lookup
from workflows import ReadOptions, compile_workflow, read_model


@dataclass(frozen=True, kw_only=True)
class LocalProject:
    """A project that runs in this process. ``plan`` has the active operators, including internal ones.

    ``notices`` has the warnings about each operator, such as document members without effect, or expressions that are
    always null. The method ``event_notices`` returns the warnings that depend on events. ``refusals`` has, for each
    pattern that a service would not register because it can never match, the reason.
    """

    plan: RunPlan
    notices: Mapping[str, Sequence[str]]
    refusals: Mapping[str, str]

    @classmethod
    def of(cls, documents: Sequence[Document], folder: Path) -> LocalProject:
        """Build the project that documents describe. Compiles the workflows."""
        return cls.of_wanted(wanted_of(documents, folder))

    @classmethod
    def of_wanted(cls, wanted: Sequence[Wanted]) -> LocalProject:
        return _Reading(wanted).project()

    @property
    def streams(self) -> Mapping[str, StreamDeclaration]:
        """The declarations of the project's streams, by name."""
        return self.plan.declarations

    def check(self) -> None:
        """Check that the plan can run. Raises ``ProjectRefused``, for example if patterns form a cycle."""
        InlineRun(self.plan)

    def derived(self) -> list[str]:
        return [name for name, stream in self.streams.items() if stream.derived]

    def feeds(self) -> dict[str, str]:
        """Return the name of the derived stream that each active operator feeds, by the operator's name.

        The name of the stream is empty if the operator feeds none.
        """
        fed: dict[str, str] = {}
        for _, operator in self.plan.variant("").operators:
            kind = KINDS_BY_NAME[operator.kind]
            if isinstance(kind, DocumentKind):
                feed = kind.feed(operator)
                fed[operator.name] = "" if feed is None else feed.stream
        return fed

    def with_sources(self, operators: Iterable[str]) -> set[str]:
        """Return the names of ``operators``, and of all operators that feed them, directly or through others."""
        variant = self.plan.variant("")
        waiting, reached = list(operators), set[str]()
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                definitions = [operator for _, operator in variant.operators if operator.name == name]
                inputs = {source.stream for operator in definitions for source in operator.inputs}
                fed_by = [(fed.stream, feeder) for (*_, feeder), feeds in variant.feeds.of.items() for fed in feeds]
                waiting += [feeder for stream, feeder in fed_by if stream in inputs]
        return reached

    def event_notices(
        self,
        events: Mapping[str, Sequence[EventBatch]],
        beside: Mapping[str, Collection[str]] = {},
        *,
        is_example: bool = False,
    ) -> dict[str, list[str]]:
        """Return warnings, by operator or stream, about names and comparisons that do not fit the given events.

        A name is reported if no event of the stream has it. A comparison is reported if it is null for some events.
        Types are not checked on derived streams. ``beside`` has, by stream, members that the events had beside ``data``
        and that were not read. If ``is_example``, the events are a small example. Then a missing name
        is reported only if it resembles another name.
        """
        by_pattern: dict[str, list[str]] = {}
        for name, batches in events.items():
            patterns = [routed_pattern.pattern for routed_pattern, _ in self.plan.patterns[name]]
            batch, further_types = EventBatch.joined(batches), self._further_types(name)
            members = beside.get(name, ())
            notices = strangers(
                patterns,
                batch,
                further_types=further_types,
                beside=members,
                forms=self.plan.tables.forms,
                is_example=is_example,
            )
            for pattern, notice in notices:
                by_pattern.setdefault(pattern.name, []).append(notice.placed)
            constraint_set, types = self.plan.sets[name], types_of(batch)
            for operator, names_read in self._names_read.get(name, {}).items():
                sentences = strange_names(
                    names_read, batch, further_types=further_types, beside=members, is_example=is_example
                )
                if sentences:
                    by_pattern.setdefault(operator, []).extend(sentences)
            if misspelt := misspelt_types(self.streams[name], constraint_set, types, "in these events"):
                by_pattern.setdefault(name, []).extend(misspelt)
        return by_pattern

    def derived_events(self, results: Results) -> dict[str, list[EventBatch]]:
        """Return the events of derived streams among the results, by stream, without streams that nothing reads."""
        events: dict[str, list[Event]] = {}
        for body in results[EVENTS]:
            if not self.plan.patterns[body["stream"]] and body["stream"] not in self._names_read:
                continue
            event = Event(
                id=body["id"], type=body["type"], time_us=parse_time(body["time"]), key=body["key"], data=body["data"]
            )
            events.setdefault(body["stream"], []).append(event)
        return {name: [EventBatch.from_events(stream_events)] for name, stream_events in events.items()}

    @cached_property
    def _names_read(self) -> Mapping[str, Mapping[str, Sequence[NameRead]]]:
        """The names that documents of operators read, by stream and operator."""
        names: dict[str, dict[str, list[NameRead]]] = {}
        for _, operator in self.plan.variant("").operators:
            kind = KINDS_BY_NAME[operator.kind]
            for read in kind.names_read(operator) if isinstance(kind, DocumentKind) else ():
                names.setdefault(read.stream, {}).setdefault(operator.name, []).append(read)
        return names

    def _further_types(self, stream: str) -> Collection[str] | None:
        """Return the types that a stream's declaration and constraints name, or None for a derived stream."""
        declaration = self.streams[stream]
        if declaration.derived:
            return None
        return {*declaration.event_types, *declaration.end_events, *constrained_types(self.plan.sets[stream])}

    def exercises(self) -> list[str]:
        """Return the names of the exercises that a run needs.

        An exercise compiles kernels by calling them (``streams.compiling``).
        """
        return run_exercises(RoundPlan(variants=(self.plan.variant(""),)))

    def run(
        self,
        events: Mapping[str, EventBatch],
        *,
        promises: Sequence[tuple[str, Punctuation]] = (),
        is_open: bool = False,
    ) -> Results:
        """Run the operators over the events of each stream, in order of arrival, and return the results.

        Each item of ``promises`` has a stream and a range of finished keys. If ``is_open``, transactions continue after
        the last event. Otherwise, they end with it.
        """
        return self.fed(events, promises=promises).results(is_open=is_open)

    def fed(self, events: Mapping[str, EventBatch], *, promises: Sequence[tuple[str, Punctuation]] = ()) -> InlineRun:
        """Return a run that has processed the promises and the events, but has not finished."""
        run = InlineRun(self.plan)
        for name, promise in promises:
            run.append_record(name, promise)
        for name, batch in events.items():
            run.feed(name, batch)
        return run

    def stream(self, name: str) -> StreamDeclaration:
        """Return the declaration of a stream. Raises ``ProjectRefused`` if the project has no such stream."""
        if name not in self.streams:
            raise ProjectRefused.of([_undeclared("stream", name, self.streams)])
        return self.streams[name]


class _Reading:
    def __init__(self, wanted: Sequence[Wanted]) -> None:
        self._wanted = wanted
        self._declared = {
            resource.name: StreamDeclaration.from_json({"name": resource.name, **resource.form})
            for resource in self._of(Streams)
        }

    @cached_property
    def _tables(self) -> Tables:
        calendars = [resource.extra["version"] for resource in self._of(Calendars)]
        return reduce(Tables.with_version, [*map(table_of, self._of(ReferenceTables)), *calendars], Tables())

    def project(self) -> LocalProject:
        sets = self._sets()
        patterns: dict[str, list[tuple[RoutedPattern, bool]]] = {name: [] for name in self._declared}
        operators = list(self._operators())
        for operator in operators:
            if operator.kind == PatternKind.name:
                stream = operator.inputs[0].stream
                pattern = routed(parse_pattern(operator.body["text"]), self._declared[stream])
                pattern = replace(pattern, suppression=operator.body.get(SUPPRESSION))
                patterns[stream].append((pattern, operator.body["is_guarded"]))
        plan = RunPlan(
            declarations=self._declared,
            sets=sets,
            patterns=patterns,
            operators=[operator for operator in operators if operator.kind != PatternKind.name],
            tables=self._tables,
        )
        notices = {operator.name: sentences for operator in operators if (sentences := self._notices(operator, sets))}
        notices |= self._of_patterns(patterns)
        rules = {operator.name: operator.body[SUPPRESSION] for operator in operators if SUPPRESSION in operator.body}
        for name, suppression in rules.items():
            if sentences := resolving_nothing(suppression, rules, "is active in the project, so no incident is closed"):
                notices[name] = [*notices.get(name, ()), *sentences]
        refusals = dict(self._refused(patterns, sets))
        for name, reason in refusals.items():
            notices[name] = [*notices.get(name, ()), reason]
        return LocalProject(plan=plan, notices=notices, refusals=refusals)

    def _refused(
        self, patterns: Mapping[str, Sequence[tuple[RoutedPattern, bool]]], sets: Mapping[str, ConstraintSet]
    ) -> Iterator[tuple[str, str]]:
        """Yield patterns that the constraints of the project make impossible, with the reason.

        A NOT at the end is not checked, because constraints of the service may end traces.
        """
        for stream, of_stream in patterns.items():
            rules = StreamRules(declaration=self._declared[stream], document=to_document(sets[stream]))
            for pattern, is_guarded in of_stream:
                try:
                    OnStream(rules=rules, routed=pattern, is_guarded=is_guarded).check.require_satisfiable()
                except UnsatisfiablePattern as refused:
                    yield pattern.pattern.name, refused.message

    def _of_patterns(self, patterns: Mapping[str, Sequence[tuple[RoutedPattern, bool]]]) -> dict[str, list[str]]:
        by_pattern: dict[str, list[str]] = {}
        for stream, routed_patterns in patterns.items():
            producers = self._producers(stream)
            for pattern in (routed_pattern.pattern for routed_pattern, _ in routed_patterns):
                unfed = unfed_types(pattern, stream, producers) if producers else ()
                for notice in (*null_notices(pattern), *key_notices(pattern, self._tables), *unfed):
                    by_pattern.setdefault(pattern.name, []).append(notice.placed)
        return by_pattern

    def _producers(self, stream: str) -> list[Pattern]:
        """Return the patterns with INTO that feed a stream, or none if another kind of operator feeds it, too."""
        feeders = [(cast("Operators", resource.kind).kind, resource) for resource in self._of(Operators)]
        feeding = [(kind, resource) for kind, resource in feeders if resource.feeds == stream]
        if any(kind.name != PatternKind.name for kind, _ in feeding):
            return []
        return [parse_pattern(resource.form["text"]) for _, resource in feeding]

    def _notices(self, operator: Definition, sets: Mapping[str, ConstraintSet]) -> Sequence[str]:
        kind = KINDS_BY_NAME[operator.kind]
        if not isinstance(kind, DocumentKind):
            return ()
        return kind.notices(operator, self._declared.__getitem__, lambda stream: bool(sets[stream].parts))

    def _operators(self) -> Iterator[Definition]:
        resources = [(resource, cast("Operators", resource.kind).kind) for resource in self._of(Operators)]
        feeders = [(kind.name, resource.name, resource.feeds) for resource, kind in resources]
        for resource, kind in resources:
            declared = partial(self._declaration, resource)
            with _placed(resource):
                operator = kind.read({"name": resource.name, **own_members(resource.form)}, declared)
                require_final(operator, feeders)
                lookups = kind.lookups(operator)
                for lookup in lookups:
                    require_lookup(self._tables.forms, *lookup)
                if any(table_lookup.keys is None for table_lookup in lookups):
                    kind.require_rows(operator, self._tables)
                if resource.form["state"] == "active":
                    yield from (replace(part, version=1) for part in (operator, *kind.parts(operator, declared)))

    def _declaration(self, resource: Wanted, stream: str) -> StreamDeclaration:
        self._require(resource, "stream", stream, self._declared)
        return self._declared[stream]

    def _sets(self) -> dict[str, ConstraintSet]:
        models: dict[str, Derived] = {}
        for resource in self._of(Workflows):
            with _placed(resource):
                models[resource.name] = _compiled(resource.name, resource.form)
        hand_written = dict.fromkeys(self._declared, ConstraintSet())
        for resource in self._of(ConstraintSets):
            self._require(resource, "stream", resource.name, self._declared)
            hand_written[resource.name] = parse_constraints(resource.form).constraint_set
        sets = {
            name: effective_set(hand_written[name], declared, None, "auto") for name, declared in self._declared.items()
        }
        for resource in self._of(Following):
            workflow = str(resource.form["workflow"])
            self._require(resource, "workflow", workflow, models)
            with _placed(resource):
                declared = self._declared[resource.name]
                sets[resource.name] = effective_set(
                    hand_written[resource.name], declared, models[workflow], resource.form["mode"]
                )
        return sets

    def _of(self, kind: type) -> list[Wanted]:
        return [resource for resource in self._wanted if isinstance(resource.kind, kind)]

    def _require(self, resource: Wanted, what: str, name: str, declared: Mapping[str, Any]) -> None:
        if name not in declared:
            raise resource.document.refuse(_undeclared(what, name, declared), what)


@contextmanager
def _placed(resource: Wanted) -> Iterator[None]:
    try:
        yield
    except ProjectRefused:
        raise
    except ForestallError as error:
        member = re.match(r"\w*", str(error.details.get("field") or ""))
        raise resource.document.refuse(error.message, member[0] if member else "") from error


def _compiled(name: str, form: Form) -> Derived:
    options = ReadOptions(process=form["process"], mapping=form["mapping"])
    return Derived.of(compile_workflow(read_model(form["model"].encode(), options)), name)


def _undeclared(what: str, name: str, declared: Mapping[str, Any]) -> str:
    return f"no document declares the {what} {name!r}{did_you_mean(name, declared)}"
