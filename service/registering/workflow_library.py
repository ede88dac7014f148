"""Workflows: upload, look up, compare, check traces, draw, and make streams follow them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from constraints import Constraint
from service.errors import (
    InvalidWorkflowName,
    ModelTooLarge,
    NotFollowing,
    StreamMissing,
    UnknownStream,
    UnknownTrace,
    WorkflowFollowed,
)
from service.registering.constraint_sets import ConstraintSets
from service.registering.joining import Derived
from service.registering.reports import ConstraintReport
from service.runtime import Stores
from service.settings import PREFIX, Settings
from service.stores import (
    ANY,
    Checks,
    Condition,
    FollowMode,
    RegisteredConstraints,
    RegisteredWorkflow,
    WorkflowSummary,
)
from streams import Clock, EventBatch, RecordKind, key_hash, name_fault
from workflows import (
    CompiledWorkflow,
    CompileLimits,
    Conformance,
    ModelFormat,
    ReadOptions,
    WorkflowModel,
    WorkflowTooLarge,
    check_trace,
    compile_workflow,
    draw,
    read_model,
)

_SETTINGS = {
    "max_event_types": f"{PREFIX}LIMITS__MAX_EVENT_TYPES",
    "max_elements": f"{PREFIX}LIMITS__MAX_MODEL_ELEMENTS",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUpload:
    """An uploaded model. If ``format`` is None, the format is detected.

    ``mapping`` has the event type of each task, by the task's name or id. None makes a task silent.
    """

    name: str
    content: bytes
    media_type: str
    format: ModelFormat | None = None
    process: str | None = None
    mapping: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    stream: str | None = None
    mode: FollowMode = "auto"
    condition: Condition = ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """A stream that follows a workflow.

    ``is_exact`` is True if the stream is compared with the automaton, and not only with the constraints.
    """

    stream: str
    version: int
    mode: FollowMode
    is_exact: bool
    constraints_version: int
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowReport:
    """A registered workflow, and the streams that follow it. ``is_new`` is True if the call changed any of them."""

    record: RegisteredWorkflow
    is_new: bool = False
    followers: tuple[Follower, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDifference:
    """The constraints that hold in only one of two versions of a workflow.

    ``has_same_language`` says whether both versions have the same complete traces, or is None if this is unknown.
    """

    first: Derived
    second: Derived
    added: tuple[Constraint, ...]
    removed: tuple[Constraint, ...]
    has_same_language: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The event types to highlight in a drawing, and the types that are ``expected`` next.

    ``highlighted`` may have the number of events of each type, which the drawing then shows.
    """

    highlighted: Mapping[str, int] | Collection[str] = ()
    expected: Collection[str] = ()


class WorkflowLibrary:
    """Registers, compares and draws workflows, and makes streams follow them."""

    def __init__(self, stores: Stores, settings: Settings, clock: Clock, constraint_sets: ConstraintSets) -> None:
        self._stores = stores
        self._limits = settings.limits
        self._clock = clock
        self._constraint_sets = constraint_sets

    def upload(self, upload: ModelUpload) -> WorkflowReport:
        """Register a model as the first or next version of a workflow, and switch the workflow's followers to it.

        Everything is checked before anything changes. If an upload was interrupted, repeating it completes it.
        """
        self._check(upload)
        model = read_model(upload.content, _options(upload.process, upload.mapping), upload.format)
        compiled = self._compile(model)
        derived = Derived.of(compiled, upload.name)

        def required() -> Checks:
            checks = self._stores.workflows.use_check(upload.name)
            self._check_followers(upload, derived)
            return checks

        self._check_followers(upload, derived)
        record, is_new = self._stores.workflows.put(
            _unversioned(upload, compiled, self._clock.now_us()),
            upload.content,
            derived.to_findings(),
            upload.condition,
            required,
        )
        derived = replace(derived, version=record.version)
        if upload.stream is not None:
            is_new = self._constraint_sets.follow(upload.stream, derived, upload.mode).is_new or is_new
        is_new = self._switch_followers(derived) or is_new
        return WorkflowReport(record=record, is_new=is_new, followers=self._followers(record.name))

    def workflow(self, name: str, version: int | None = None) -> WorkflowReport:
        """Return a version of a workflow, by default the current one, and the streams that follow the workflow."""
        return WorkflowReport(record=self._stores.workflows.version(name, version), followers=self._followers(name))

    def workflows(self) -> list[WorkflowReport]:
        followed = self._stores.registry.constraints.all()
        return [
            WorkflowReport(record=record, followers=_followers_of(record.name, followed))
            for record in self._stores.workflows.all()
        ]

    def source(self, name: str, version: int | None = None) -> tuple[RegisteredWorkflow, bytes]:
        """Return a version of a workflow, by default the current one, and its model as uploaded."""
        record = self._stores.workflows.version(name, version)
        return record, self._stores.workflows.model(record)

    def derived(self, name: str, version: int | None = None) -> Derived:
        """Return the constraints and the automaton of a workflow version, by default the current version."""
        return self._derived(self._stores.workflows.version(name, version))

    def difference(self, name: str, first: int, second: int) -> WorkflowDifference:
        first_derived, second_derived = self.derived(name, first), self.derived(name, second)
        before, after = (
            frozenset(first_derived.extraction.constraints),
            frozenset(second_derived.extraction.constraints),
        )
        is_known = first_derived.automaton is not None and second_derived.automaton is not None
        return WorkflowDifference(
            first=first_derived,
            second=second_derived,
            added=tuple(constraint for constraint in second_derived.extraction.constraints if constraint not in before),
            removed=tuple(constraint for constraint in first_derived.extraction.constraints if constraint not in after),
            has_same_language=first_derived.automaton == second_derived.automaton if is_known else None,
        )

    def conformance(
        self, name: str, traces: Sequence[Sequence[str]], version: int | None = None
    ) -> tuple[RegisteredWorkflow, list[Conformance]]:
        """Compare traces, which are sequences of event types, with a workflow version. Returns one result per trace."""
        record = self._stores.workflows.version(name, version)
        compiled = self._compiled(record)
        return record, [check_trace(compiled, trace) for trace in traces]

    def picture(self, name: str, version: int | None = None, marks: Marks | None = None) -> str:
        """Draw a version of a workflow as SVG, with the elements of the marked event types highlighted."""
        marks = marks or Marks()
        return draw(self._model(self._stores.workflows.version(name, version)), marks.highlighted, marks.expected)

    def marks_of_trace(self, name: str, key: str, *, stream: str | None = None, version: int | None = None) -> Marks:
        """Return the event types of one transaction, and the types that may come next, to highlight them in a drawing.

        ``stream`` is by default the only stream that follows the workflow, and ``version`` is by default the current
        version. Raises ``UnknownTrace`` if the log has no event of the transaction. Raises ``StreamMissing`` if several
        streams, or none, follow the workflow.
        """
        types = [event_type for _, event_type in self._events(self._stream_of(name, stream), key)]
        if not types:
            raise UnknownTrace(f"the log has no event of the transaction {key!r}", key=key)
        _, (conformance,) = self.conformance(name, [types], version)
        return Marks(highlighted=Counter(types), expected=conformance.still_allowed or conformance.allowed)

    def follow(self, stream: str, name: str, mode: FollowMode = "auto", condition: Condition = ANY) -> ConstraintReport:
        """Make a stream follow the current version of a workflow, and each later version once it is registered."""
        self._stores.registry.stream(stream)
        derived = self.derived(name)
        report = self._constraint_sets.follow(stream, derived, mode, condition)
        if self._is_replaced(derived):  # by an upload that did not see this follower
            self._switch_followers(self.derived(name))
            report = replace(self._constraint_sets.current(stream), is_new=True)
        return report

    def following(self, stream: str) -> ConstraintReport:
        """Return the constraint set of a stream that follows a workflow. Raises ``NotFollowing`` if it follows none."""
        self._stores.registry.stream(stream)
        record = self._stores.registry.constraints.find(stream)
        if record is None or record.following is None:
            raise NotFollowing(f"the stream {stream!r} follows no workflow", stream=stream)
        return self._constraint_sets.current(stream)

    def delete(self, name: str, condition: Condition = ANY) -> None:
        """Delete a workflow. Raises ``WorkflowFollowed`` if a stream follows it."""

        def required() -> Checks:
            checks = self._stores.workflows.use_check(name)
            if streams := [follower.stream for follower in self._followers(name)]:
                raise WorkflowFollowed(
                    f"the workflow {name!r} is followed by {', '.join(streams)}; unfollow it first (DELETE "
                    "/v1/streams/STREAM/workflow)",
                    workflow=name,
                    streams=list(streams),
                )
            return checks

        self._stores.workflows.remove(name, condition, required)

    def _check(self, upload: ModelUpload) -> None:
        if fault := name_fault("workflow", upload.name):
            raise InvalidWorkflowName(fault)
        limit = self._limits.max_model_bytes
        if len(upload.content) > limit:
            raise ModelTooLarge(
                f"the model has {len(upload.content)} bytes; at most {limit} are read", limit_bytes=limit
            )
        if upload.stream is not None:
            self._stores.registry.stream(upload.stream)

    def _compile(self, model: WorkflowModel) -> CompiledWorkflow:
        limits = CompileLimits(
            max_states=self._limits.max_automaton_states,
            max_markings=self._limits.max_markings,
            max_event_types=self._limits.max_event_types,
            max_elements=self._limits.max_model_elements,
        )
        try:
            return compile_workflow(model, limits)
        except WorkflowTooLarge as error:
            setting = _SETTINGS[error.limit]
            raise ModelTooLarge(
                f"{error.message}, or set {setting}", setting=setting, most=error.details["most"]
            ) from error

    def _check_followers(self, upload: ModelUpload, derived: Derived) -> None:
        modes = {follower.stream: follower.mode for follower in self._followers(upload.name)}
        if upload.stream is not None:
            modes[upload.stream] = upload.mode
        elif upload.mode == "exact":
            derived.is_exact(upload.mode)
        for stream, mode in modes.items():
            self._constraint_sets.check_following(stream, derived, mode)

    def _switch_followers(self, derived: Derived) -> bool:
        """Switch all streams that follow a workflow to its current version. Return whether any of them changed.

        ``derived`` is the current version at the time of the call. A stream that begins to follow meanwhile is switched
        here, or has already begun with the new version (``follow``).
        """
        is_changed, is_current = False, False
        while not is_current:
            for follower in self._followers(derived.workflow):
                with suppress(NotFollowing, UnknownStream):  # another caller was faster
                    is_changed = self._constraint_sets.switch(follower.stream, derived) or is_changed
            is_current = not self._is_replaced(derived)
            derived = derived if is_current else self.derived(derived.workflow)
        return is_changed

    def _is_replaced(self, derived: Derived) -> bool:
        current = self._stores.workflows.find(derived.workflow)
        return current is not None and current.version > derived.version

    def _followers(self, name: str) -> tuple[Follower, ...]:
        return _followers_of(name, self._stores.registry.constraints.all())

    def _derived(self, record: RegisteredWorkflow) -> Derived:
        return Derived.from_findings(self._stores.workflows.findings(record), record.name, record.version)

    def _model(self, record: RegisteredWorkflow) -> WorkflowModel:
        content = self._stores.workflows.model(record)
        return read_model(content, _options(record.process, record.mapping), ModelFormat(record.summary.format))

    def _compiled(self, record: RegisteredWorkflow) -> CompiledWorkflow:
        """Return a stored workflow in compiled form. ``tree`` and ``net`` are None, because they are not stored."""
        derived = self._derived(record)
        return CompiledWorkflow(
            model=self._model(record),
            tree=None,
            net=None,
            automaton=derived.automaton,
            without_automaton=derived.without_automaton,
            extraction=derived.extraction,
        )

    def _stream_of(self, name: str, stream: str | None) -> str:
        followers = [follower.stream for follower in self._followers(self._stores.workflows.get(name).name)]
        if stream is not None:
            return self._stores.registry.stream(stream).name
        if len(followers) != 1:
            listed = ", ".join(followers) or "no stream"
            raise StreamMissing(
                f"{listed} follows the workflow {name!r}: name the stream of the transaction with ?stream=NAME"
            )
        return followers[0]

    def _events(self, stream: str, key: str) -> list[tuple[int, str]]:
        log = self._stores.log
        hashed = key_hash(key)
        events: list[tuple[int, str]] = []
        after = f"{self._stores.registry.since_ms(stream)}-0"
        for entry in (entry for home in log.layout.read().homes(hashed) for entry in log.read_range(home, after=after)):
            if entry.kind is RecordKind.EVENTS and entry.stream == stream and not entry.route:
                batch = EventBatch.from_bytes(entry.body)
                if (batch.key_hashes == hashed).any():
                    events += [(event.time_us, event.type) for event in batch.to_events() if event.key == key]
        return sorted(events, key=lambda event: event[0])


def _options(process: str | None, mapping: Mapping[str, str | None]) -> ReadOptions:
    return ReadOptions(
        process=process, mapping={" ".join(task.split()): event_type for task, event_type in mapping.items()}
    )


def _unversioned(upload: ModelUpload, compiled: CompiledWorkflow, now_us: int) -> RegisteredWorkflow:
    model, extraction = compiled.model, compiled.extraction
    noticed = frozenset(map(str, model.notices))
    summary = WorkflowSummary(
        title=model.name,
        format=model.format.value,
        method=extraction.method.value,
        events=extraction.events,
        end=extraction.end,
        counts=dict(sorted(Counter(constraint.kind for constraint in extraction.constraints).items())),
        states=None if compiled.automaton is None else len(compiled.automaton),
        without_automaton=compiled.without_automaton,
        warnings=tuple(warning for warning in extraction.warnings if warning not in noticed),
        notices=tuple((notice.element, notice.message) for notice in model.notices),
    )
    return RegisteredWorkflow(
        name=upload.name,
        version=0,
        is_active=True,
        size_bytes=len(upload.content),
        registered_us=now_us,
        media_type=upload.media_type,
        process=upload.process,
        mapping=upload.mapping,
        summary=summary,
    )


def _followers_of(name: str, records: Sequence[RegisteredConstraints]) -> tuple[Follower, ...]:
    return tuple(
        Follower(
            stream=record.stream,
            version=record.following.version,
            mode=record.following.mode,
            is_exact="automaton" in record.document.get("workflow", {}),
            constraints_version=record.version,
            notices=record.notices,
        )
        for record in records
        if record.following is not None and record.following.workflow == name
    )
