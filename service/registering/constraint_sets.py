"""The constraint sets of streams: hand-written, from a workflow, or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from constraints import ConstraintSet, Part, check_set, parse_constraints, to_document, within_cap
from nfa import Query, build_query, parse_pattern
from service.errors import ConstraintsTooLarge, NotFollowing, StreamMissing, UnknownConstraints, WorkflowInDocument
from service.registering.inspection import SetInspection, inspect_set, is_explained
from service.registering.joining import Derived, effective_set, workflow_mismatches
from service.registering.known_types import known_types
from service.registering.on_stream import StreamRules
from service.registering.reports import ConstraintReport, constraint_warnings, mismatches
from service.runtime import Stores
from service.settings import PREFIX, Settings
from service.stores import ANY, Checks, Condition, ConstraintsDraft, Following, FollowMode, RegisteredConstraints
from shards import routed
from streams import Clock, StreamDeclaration


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    own: ConstraintSet
    notices: tuple[str, ...]
    derived: Derived | None
    mode: FollowMode = "auto"


class ConstraintSets:
    """Sets, changes and analyses the constraint sets of streams."""

    def __init__(self, stores: Stores, settings: Settings, clock: Clock) -> None:
        self._stores = stores
        self._settings = settings
        self._clock = clock

    def upload(self, stream: str | None, document: object, condition: Condition = ANY) -> ConstraintReport:
        """Set the hand-written constraints of a stream. If the stream follows a workflow, it continues to do so.

        The document is JSON or YAML text, or the decoded value. If ``stream`` is None, the document names the stream.
        The stream's end events are added to the set. If unknown types are deviations, the stream's event types are
        added, too. Raises ``WorkflowInDocument`` if the document contains a workflow.
        """
        parsed = parse_constraints(document, max_constraints=self._settings.limits.max_constraints)
        if parsed.constraint_set.process is not None:
            raise WorkflowInDocument(
                "the member 'workflow' of a constraint document is written by the service only; upload the model "
                "(PUT /v1/workflows/NAME) and let the stream follow it (PUT /v1/streams/NAME/workflow)"
            )
        name = _one_stream(stream, parsed.stream)
        parts = _Parts(own=parsed.constraint_set, notices=parsed.notices, derived=None)
        return self._changed(name, lambda registered: self._with_workflow(parts, registered), condition)

    def follow(
        self, stream: str, derived: Derived, mode: FollowMode | None = None, condition: Condition = ANY
    ) -> ConstraintReport:
        """Make a stream follow a workflow, in addition to its hand-written constraints.

        Without a mode, a stream that already follows a workflow keeps its mode. A stream that follows a later version
        of the workflow than ``derived`` keeps this later version. Refused if the mode is ``exact`` and the workflow has
        no automaton, or if the hand-written constraints contradict the workflow, or if the workflow is deleted.
        """

        def parts(registered: RegisteredConstraints | None) -> _Parts:
            return _following(registered, self._latest(registered, derived), mode)

        return self._changed(
            stream, parts, condition, required=lambda: self._stores.workflows.current_check(derived.workflow)
        )

    def switch(self, stream: str, derived: Derived) -> bool:
        """Switch a stream to a version of the workflow that it follows. Returns whether the constraint set changed.

        A stream that follows a later version keeps that version. Raises ``NotFollowing`` if the stream no longer
        follows the workflow.
        """

        def parts(registered: RegisteredConstraints | None) -> _Parts:
            following = None if registered is None else registered.following
            if following is None or following.workflow != derived.workflow:
                raise NotFollowing(f"the stream {stream!r} does not follow {derived.workflow!r}", stream=stream)
            return _following(registered, self._latest(registered, derived), following.mode)

        return self._stored(stream, parts)[1]

    def check_following(self, stream: str, derived: Derived, mode: FollowMode | None = None) -> None:
        """Raise the error that ``follow`` would raise. Nothing is changed."""
        declaration = self._stores.registry.stream(stream)
        self._draft(declaration, _following(self._stores.registry.constraints.find(stream), derived, mode))

    def unfollow(self, stream: str, condition: Condition = ANY) -> ConstraintReport:
        """Stop comparing a stream with a workflow. The stream keeps its hand-written constraints."""

        def parts(registered: RegisteredConstraints | None) -> _Parts:
            if registered is None or registered.following is None:
                raise NotFollowing(f"the stream {stream!r} follows no workflow", stream=stream)
            return replace(_hand_written(registered), derived=None)

        return self._changed(stream, parts, condition)

    def remove(self, stream: str, condition: Condition = ANY) -> ConstraintReport:
        """Remove a stream's hand-written constraints. A stream that follows a workflow continues to follow it."""

        def parts(registered: RegisteredConstraints | None) -> _Parts:
            if registered is None:
                self._stores.registry.constraints.get(stream)
            return self._with_workflow(_Parts(own=ConstraintSet(), notices=(), derived=None), registered)

        return self._changed(stream, parts, condition)

    def redrafted(self, declaration: StreamDeclaration, registered: RegisteredConstraints) -> ConstraintsDraft:
        """Return the constraint set of a stream whose declaration changes. The set is checked as in ``follow``."""
        return self._draft(declaration, self._with_workflow(_hand_written(registered), registered))

    def current(self, stream: str) -> ConstraintReport:
        self._stores.registry.stream(stream)
        record = self._stores.registry.constraints.get(stream)
        return self._report(record, is_new=False)

    def versions(self, stream: str) -> list[RegisteredConstraints]:
        """Return all versions of a stream's constraint set, the current one last."""
        self._stores.registry.stream(stream)
        return self._stores.registry.constraints.versions(stream)

    def version(self, stream: str, version: int) -> RegisteredConstraints:
        """Return a version of a stream's constraint set. Raises ``UnknownConstraints``."""
        for record in self.versions(stream):
            if record.version == version:
                return record
        raise UnknownConstraints(f"the constraint set of {stream!r} has no version {version}", stream=stream)

    def analysis(self, stream: str) -> tuple[RegisteredConstraints, SetInspection]:
        """Analyse a stream's constraint set without events. Returns the registered set and the analysis.

        The analysis includes the guarded patterns that ``is_explained`` accepts.
        """
        declaration = self._stores.registry.stream(stream)
        record = self._stores.registry.constraints.get(stream)
        queries = [query for query in self.guarded_queries(declaration) if is_explained(query)]
        return record, inspect_set(queries, parse_constraints(record.document).constraint_set)

    def derived(self, following: Following) -> Derived:
        """Return the compiled workflow version that a stream follows.

        The version is found even if the workflow was deleted or has newer versions.
        """
        record = self._stores.workflows.followed(following.workflow, following.version)
        return Derived.from_findings(self._stores.workflows.findings(record), record.name, record.version)

    def guarded_queries(self, declaration: StreamDeclaration) -> list[Query]:
        """Return the queries of the patterns whose partial matches a stream's constraints may terminate early.

        These patterns are guarded and running, and read whole traces.
        """
        parsed = [
            parse_pattern(pattern.text)
            for pattern in self._stores.registry.patterns(declaration.name)
            if pattern.is_guarded and pattern.is_running
        ]
        return [build_query(pattern) for pattern in parsed if routed(pattern, declaration).has_whole_traces]

    def _latest(self, registered: RegisteredConstraints | None, derived: Derived) -> Derived:
        """Return ``derived`` or, if the stream already follows a later version of the same workflow, that version."""
        following = None if registered is None else registered.following
        if following is None or following.workflow != derived.workflow or following.version <= derived.version:
            return derived
        return self.derived(following)

    def _with_workflow(self, parts: _Parts, registered: RegisteredConstraints | None) -> _Parts:
        if registered is None or registered.following is None:
            return parts
        return replace(parts, derived=self.derived(registered.following), mode=registered.following.mode)

    def _changed(
        self,
        stream: str,
        parts: Callable[[RegisteredConstraints | None], _Parts],
        condition: Condition = ANY,
        *,
        required: Callable[[], Checks] = tuple,
    ) -> ConstraintReport:
        record, is_new = self._stored(stream, parts, condition, required)
        return self._report(record, is_new=is_new)

    def _stored(
        self,
        stream: str,
        parts: Callable[[RegisteredConstraints | None], _Parts],
        condition: Condition = ANY,
        required: Callable[[], Checks] = tuple,
    ) -> tuple[RegisteredConstraints, bool]:
        """Store the constraint set of a stream. Returns the record, and whether the set changed."""
        registry = self._stores.registry
        registry.stream(stream)  # an unknown stream is reported before a failed precondition
        return registry.constraints.put(
            stream,
            lambda registered: self._draft(registry.stream(stream), parts(registered)),
            self._clock.now_us(),
            condition,
            required,
        )

    def _draft(self, declaration: StreamDeclaration, parts: _Parts) -> ConstraintsDraft:
        constraint_set = effective_set(parts.own, declaration, parts.derived, parts.mode)
        self._check_types(constraint_set)
        check_set(constraint_set)
        constraint_set, left_out = within_cap(constraint_set, self.guarded_queries(declaration))
        derived = parts.derived
        contradictions = [
            *mismatches(parts.own, declaration),
            *([] if derived is None else workflow_mismatches(derived, declaration, parts.own.settings)),
        ]
        return ConstraintsDraft(
            document=to_document(constraint_set),
            notices=(*parts.notices, *contradictions, *_left_out_notice(left_out)),
            own=to_document(parts.own),
            following=None if derived is None else derived.followed_as(parts.mode),
        )

    def _check_types(self, constraint_set: ConstraintSet) -> None:
        """Refuse a set that names too many types. A symbol (a type with a condition) counts as a type."""
        count, most = len(constraint_set.names), self._settings.limits.max_event_types
        if count > most:
            setting = f"{PREFIX}LIMITS__MAX_EVENT_TYPES"
            raise ConstraintsTooLarge(
                f"the constraints of the stream, those of its workflow included, name {count} event types; "
                f"at most {most} are allowed: name fewer, or set {setting}",
                setting=setting,
                most=most,
            )

    def _report(self, record: RegisteredConstraints, *, is_new: bool) -> ConstraintReport:
        rules = StreamRules(declaration=self._stores.registry.stream(record.stream), document=record.document)
        patterns = [pattern for pattern in self._stores.registry.patterns(record.stream) if pattern.state != "retired"]
        types = known_types(self._stores, record.stream)
        return ConstraintReport(
            record=record,
            is_new=is_new,
            constraint_set=rules.constraint_set,
            warnings=constraint_warnings(rules, patterns, types, self._dropped_types(record.following)),
        )

    def _dropped_types(self, following: Following | None) -> frozenset[str]:
        """Return the types of a followed workflow that its version before has, and the followed version lacks."""
        if following is None or following.version == 1:
            return frozenset()
        before, after = (
            self._stores.workflows.followed(following.workflow, version).summary.events
            for version in (following.version - 1, following.version)
        )
        return frozenset(before).difference(after)


def _following(registered: RegisteredConstraints | None, derived: Derived, mode: FollowMode | None) -> _Parts:
    parts = _Parts(own=ConstraintSet(), notices=(), derived=None) if registered is None else _hand_written(registered)
    return replace(parts, derived=derived, mode=parts.mode if mode is None else mode)


def _hand_written(registered: RegisteredConstraints) -> _Parts:
    mode: FollowMode = "auto" if registered.following is None else registered.following.mode
    written = parse_constraints(registered.written)
    return _Parts(own=written.constraint_set, notices=written.notices, derived=None, mode=mode)


def _left_out_notice(parts: tuple[Part, ...]) -> tuple[str, ...]:
    """Return a notice that lists the constraints left out because the monitor would need too many states."""
    if not parts:
        return ()
    listed = ", ".join(map(str, parts))
    return (f"left out, as all together would need more monitor states than max_monitor_states: {listed}",)


def _one_stream(requested: str | None, document_stream: str | None) -> str:
    if requested is not None and document_stream not in (None, requested):
        raise StreamMissing(
            f"the document is for the stream {document_stream!r}, the query says {requested!r}; name one"
        )
    stream = document_stream if requested is None else requested
    if stream is None:
        raise StreamMissing("name the stream that the document is for: 'stream: NAME' in it, or ?stream=NAME")
    return stream
