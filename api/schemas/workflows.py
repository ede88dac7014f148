"""Workflows on the wire, with the streams that follow them and conformance checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from api.errors import WrongShape, wrong_shape
from api.schemas.constraints import ConstraintsModel
from api.wire import From, PartModel, Text, Time, WireModel
from constraints import Constraint
from service import (
    BatchTooLarge,
    ConstraintReport,
    Derived,
    Follower,
    RegisteredWorkflow,
    WorkflowDifference,
    WorkflowReport,
)
from workflows import Conformance

Mode = Literal["auto", "exact", "tables"]
DerivedKind = Literal["prior", "exclusive", "require", "existence", "implication", "not_together"]

TREE_EXAMPLE = """\
name: order
tree:
  sequence:
    - "Receive Order"
    - xor:
        - sequence: ["Check Stock", "Ship Order"]
        - "Reject Order"
    - "Close Order"
"""
JSON_EXAMPLE: dict[str, Any] = {"format": "tree", "content": TREE_EXAMPLE, "mapping": {"Close Order": "CloseOrder"}}
BPMN_EXAMPLE = """\
<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">
  <process id="order">
    <startEvent id="start"/>
    <task id="receive" name="Receive Order"/>
    <task id="close" name="Close Order"/>
    <endEvent id="end"/>
    <sequenceFlow id="f1" sourceRef="start" targetRef="receive"/>
    <sequenceFlow id="f2" sourceRef="receive" targetRef="close"/>
    <sequenceFlow id="f3" sourceRef="close" targetRef="end"/>
  </process>
</definitions>
"""


class ModelEnvelope(WireModel):
    """A model with the options of its upload."""

    format: Literal["bpmn", "pnml", "tree"] | None = Field(None, description="Detected from the content by default.")
    content: str | dict[str, Any] = Field(description="The model as a text; a tree may also be an object.")
    process: str | None = Field(None, description="Id of the process, if the file has several.")
    mapping: dict[str, str | None] = Field(
        {}, description="Event types by name or id of a task; null: the task is silent."
    )
    stream: str | None = Field(None, description="A stream that is to follow the workflow.")
    mode: Mode = Field("auto", description="How the stream follows the workflow.")

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read a model and its options from a JSON body.

        Raises:
            WrongShape: The body does not have this form. The error lists every fault.
        """
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise wrong_shape(error, document) from None


class NoticeModel(WireModel):
    """A part of a model that was left out, or read in an unexpected way."""

    element: str = Field(description="Id of the element; empty for the whole.")
    message: str


class AutomatonModel(WireModel):
    """The minimal automaton of a workflow's language."""

    state_count: int
    letter_count: int = Field(description="The number of event types.")


class FollowerModel(WireModel):
    """A stream that follows a workflow."""

    stream: str
    version: int = Field(description="The version of the workflow that it follows.")
    mode: Mode = Field(description="The requested mode.")
    used: Literal["exact", "tables"] = Field(description="Whether by the automaton, or by the constraints only.")
    constraints_version: int = Field(description="The version of its constraint set.")
    notices: list[str] = Field(description="Contradictions between the workflow and the stream, in words.")

    @classmethod
    def from_domain(cls, follower: Follower) -> Self:
        return cls.copying(follower, used="exact" if follower.is_exact else "tables")


class WorkflowVersion(WireModel):
    """A version of a workflow."""

    name: str
    version: int = Field(description="Counts from 1 for each name and never repeats.")
    title: Annotated[str, From("summary.title")] = Field(description="The model's own name; may be empty.")
    format: Annotated[Literal["bpmn", "pnml", "tree"], From("summary.format")]
    process: str | None = Field(description="The requested process.")
    mapping: dict[str, str | None] = Field(description="Event types by task; null: the task is silent.")
    method: Annotated[Literal["compositional", "automaton", "structural"], From("summary.method")] = Field(
        description="How the constraints were found: block by block, from the automaton, or from the way the net is "
        "drawn. The first two find all that hold."
    )
    event_types: Annotated[list[str], From("summary.events")] = Field(description="The event types that it emits.")
    end_events: Annotated[list[str], From("summary.end")] = Field(description="Event types that nothing follows.")
    constraint_counts: Annotated[dict[str, int], From("summary.counts")] = Field(
        description="The number of constraints that hold, by kind."
    )
    automaton: AutomatonModel | None = Field(description="Null if it has no automaton within the limits.")
    without_automaton: Annotated[Text, From("summary.without_automaton")] = Field(
        description="Why it has no automaton, in words."
    )
    warnings: Annotated[list[str], From("summary.warnings")] = Field(
        description="Dead tasks, deadlocks, parts that were left out."
    )
    notices: list[NoticeModel]
    size_bytes: int = Field(description="Bytes of the model.")
    created_at: Time

    @classmethod
    def from_record(cls, record: RegisteredWorkflow, **members: Any) -> Self:
        """Convert a version of a workflow. ``members`` are further members of a subclass."""
        states, letters = record.summary.states, len(record.summary.events)
        return cls.copying(
            record,
            automaton=None if states is None else AutomatonModel(state_count=states, letter_count=letters),
            notices=[NoticeModel(element=element, message=message) for element, message in record.summary.notices],
            **members,
        )


class WorkflowModel(WorkflowVersion):
    """A workflow, and the streams that follow it."""

    streams: list[FollowerModel] = Field(description="The streams that follow it, by name.")

    @classmethod
    def from_domain(cls, report: WorkflowReport) -> Self:
        return cls.from_record(report.record, streams=report.followers)


class WorkflowList(PartModel[WorkflowModel]):
    """All workflows, by name."""


class WorkflowVersions(PartModel[WorkflowVersion]):
    """Every version of a workflow, the newest first."""


class DerivedConstraint(WireModel):
    """A constraint that holds in a workflow."""

    constraint: str = Field(description="In words.")
    kind: str
    names: list[str] = Field(description="Event types in the order of the words.")
    derived_from: str | None = Field(description="Its origin; null: the model as a whole.")
    in_cover: bool = Field(description="Whether it belongs to the constraints from which all others follow.")


class DerivedConstraints(WireModel):
    """The constraints that hold in a version of a workflow."""

    workflow: str
    version: int
    method: Literal["compositional", "automaton", "structural"]
    event_types: list[str]
    end_events: list[str]
    total: int = Field(description="Constraints that hold.")
    cover: int = Field(description="The number of those from which all others follow.")
    items: list[DerivedConstraint]

    @classmethod
    def of(cls, derived: Derived, kinds: Collection[str], *, is_full: bool) -> Self:
        """Convert the constraints of the given kinds, or of all kinds if ``kinds`` is empty.

        If ``is_full``, convert all constraints that hold, otherwise only the cover.
        """
        extraction, cover = derived.extraction, frozenset(derived.cover)
        constraints = [
            constraint
            for constraint in extraction.constraints
            if (is_full or constraint in cover) and (not kinds or constraint.kind in kinds)
        ]
        return cls(
            workflow=derived.workflow,
            version=derived.version,
            method=extraction.method.value,
            event_types=list(extraction.events),
            end_events=list(extraction.end),
            total=len(extraction.constraints),
            cover=len(derived.cover),
            items=[
                DerivedConstraint(
                    constraint=str(constraint),
                    kind=constraint.kind,
                    names=list(constraint.names),
                    derived_from=extraction.origins.get(constraint),
                    in_cover=constraint in cover,
                )
                for constraint in constraints
            ],
        )


class KindChange(WireModel):
    """The constraints of one kind in which two versions of a workflow differ."""

    added_constraints: list[str]
    removed_constraints: list[str]


class WorkflowDiff(WireModel):
    """The differences between two versions of a workflow."""

    workflow: str
    from_version: int
    to_version: int
    same_language: bool | None = Field(description="Whether both allow the same traces; null where it is not known.")
    added_event_types: list[str]
    removed_event_types: list[str]
    added_end_events: list[str]
    removed_end_events: list[str]
    changes_by_kind: dict[str, KindChange] = Field(description="Differences by kind of constraint.")

    @classmethod
    def from_domain(cls, difference: WorkflowDifference) -> Self:
        before, after = difference.first.extraction, difference.second.extraction
        added, removed = _by_kind(difference.added), _by_kind(difference.removed)
        return cls(
            workflow=difference.first.workflow,
            from_version=difference.first.version,
            to_version=difference.second.version,
            same_language=difference.has_same_language,
            added_event_types=_missing_from(after.events, before.events),
            removed_event_types=_missing_from(before.events, after.events),
            added_end_events=_missing_from(after.end, before.end),
            removed_end_events=_missing_from(before.end, after.end),
            changes_by_kind={
                kind: KindChange(added_constraints=added.get(kind, []), removed_constraints=removed.get(kind, []))
                for kind in sorted({*added, *removed})
            },
        )


def _by_kind(constraints: Iterable[Constraint]) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for constraint in constraints:
        texts.setdefault(constraint.kind, []).append(str(constraint))
    return texts


def _missing_from(names: Iterable[str], other_names: Collection[str]) -> list[str]:
    return sorted(set(names) - set(other_names))


class TracedEvent(BaseModel):
    """An event of a conformance request. Only its type is used."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str


Trace: TypeAlias = list[str | TracedEvent]


class ConformanceRequest(WireModel):
    """One or more transactions to check, each as event types or as events."""

    trace: Trace | None = None
    traces: list[Trace] = Field([], description="Several transactions, answered in their order.")

    def to_domain(self, limit: int) -> list[list[str]]:
        """Return the event types of each transaction.

        Args:
            limit: The maximum number of events, over all transactions.

        Raises:
            WrongShape: The request has neither ``trace`` nor ``traces``.
            BatchTooLarge: The transactions have more events.
        """
        if not self.model_fields_set:
            raise WrongShape("body: give 'trace' or 'traces'")
        traces = ([] if self.trace is None else [self.trace]) + self.traces
        events = sum(map(len, traces))
        if events > limit:
            raise BatchTooLarge(f"the request has {events} events; at most {limit} are accepted", limit=limit)
        return [[event if isinstance(event, str) else event.type for event in trace] for trace in traces]


class ConformanceModel(WireModel):
    """The conformance of a transaction with the workflow."""

    conforms: bool = Field(description="Whether no event leaves the workflow.")
    is_complete: bool = Field(description="Whether it is a complete trace.")
    index: int | None = Field(description="Place of the first event that leaves the workflow, from 0.")
    event: str | None = Field(description="Type of that event.")
    kind: str | None = Field(
        description="Kind of the deviation: workflow, unknown_type, or after_end if the transaction was over."
    )
    allowed: list[str] = Field(description="Types that are allowed there instead.")
    still_allowed: list[str] = Field(description="Types that are allowed after the last event, if none leaves.")
    broken_constraints: list[str] = Field(description="Constraints that the event breaks, if there is no automaton.")
    unmet: list[str] = Field(
        description="Constraints that a complete trace would still have to meet, if there is no automaton."
    )
    unknown: list[str] = Field(description="Types that the workflow never emits.")
    is_exact: bool = Field(
        description="True: decided by an automaton; false: by constraints, which may be too lenient."
    )


class ConformanceList(WireModel):
    """The conformance of each transaction, in the order of the request."""

    workflow: str
    version: int
    items: list[ConformanceModel]

    @classmethod
    def of(cls, record: RegisteredWorkflow, conformances: Sequence[Conformance]) -> Self:
        items = [ConformanceModel.model_validate(conformance.to_document()) for conformance in conformances]
        return cls(workflow=record.name, version=record.version, items=items)


class FollowRequest(WireModel):
    """The workflow that a stream should follow."""

    workflow: str
    mode: Mode = Field(
        "auto",
        description="exact: by the workflow's automaton; tables: by its constraints; auto: exact, where there is an "
        "automaton within the limits.",
    )


class FollowedWorkflow(WireModel):
    """The workflow that a stream follows, and the constraint set derived from it."""

    workflow: str
    version: int
    mode: Mode = Field(description="The requested mode.")
    constraint_set: ConstraintsModel

    @classmethod
    def from_domain(cls, report: ConstraintReport) -> Self:
        return cls.copying(report.record.following, constraint_set=report)
