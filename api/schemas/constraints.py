"""Constraint sets and their static analysis on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from api.wire import From, PartModel, Time, WireModel
from constraints import parse_constraints
from service import ConstraintReport, RegisteredConstraints, SetInspection, set_document

EXAMPLE: dict[str, Any] = {
    "stream": "orders",
    "constraints": ["exclusive(UseLocalStock, UseRemoteStock)", {"prior": ["GenerateQuote", "GenerateInvoice"]}],
    "end": ["CloseOrder", "CancelOrder"],
}
YAML_EXAMPLE = """\
stream: orders
constraints:
  - exclusive(UseLocalStock, UseRemoteStock)
  - prior: [GenerateQuote, GenerateInvoice]
end: [CloseOrder, CancelOrder]
"""


class SettingsModel(WireModel):
    """The settings of a constraint set."""

    prune: Literal["state", "query", "shadow", "off"] = Field(
        description="What to do with partial matches that can no longer complete: drop each at once; drop those of an "
        "alternative together; keep all and report what would have been dropped; keep all."
    )
    on_violation: Literal["report", "fail_trace", "ignore"] = Field(
        description="What to do with a transaction that breaks a constraint: report it and stop pruning it; "
        "report it and stop matching in it; count it and continue pruning, so that matches may be lost."
    )
    unknown_types: Literal["ignore", "deviate"] = Field(description="Whether types beyond 'types' break a constraint.")
    completion: Literal["assumed", "not_assumed"] = Field(
        description="Whether transactions are assumed to continue until they contain everything required."
    )
    types: list[str] = Field(description="Event types of the process besides those that constraints name.")
    frequencies: dict[str, float] = Field(description="By name, the share of the transactions that contain it.")
    max_monitor_states: int


class ProcessModel(WireModel):
    """The workflow that a constraint set includes."""

    name: str = Field(description="The workflow that the stream follows.")
    version: int
    used: Literal["exact", "tables"] = Field(
        description="exact: the workflow's automaton is followed; tables: its constraints only."
    )
    state_count: int | None = Field(description="States of the automaton.")
    derived_constraints: list[str] = Field(
        description="The part of 'constraints' that comes from the workflow only, in words."
    )
    derived_end_events: list[str] = Field(description="The part of 'end_events' that comes from the workflow only.")


class ConstraintsSummary(WireModel):
    """A version of a stream's constraint set, without its content."""

    stream: str
    version: int = Field(description="Counts from 1 within the stream.")
    created_at: Time


class ConstraintsList(PartModel[ConstraintsSummary]):
    """The constraint sets of all streams that have one, by name."""


class ConstraintsVersion(ConstraintsSummary):
    """A version of a stream's constraint set, with its content."""

    constraints: list[str] = Field(description="Orders and occurrences, in words.")
    rules: list[str] = Field(description="Other rules, in words.")
    symbols: list[str] = Field(description="Types with a condition that constraints name.")
    end_events: list[str] = Field(description="Types after which nothing follows, the stream's end events included.")
    followed_workflow: ProcessModel | None = Field(
        None, description="The workflow from which a part of the set is derived."
    )
    settings: SettingsModel

    @classmethod
    def of_version(cls, record: RegisteredConstraints) -> Self:
        return cls.copying(record, **set_document(parse_constraints(record.document).constraint_set))


class ConstraintsModel(ConstraintsVersion):
    """The current constraint set of a stream."""

    warnings: list[str] = Field(description="Types that can never occur, and patterns that can no longer match.")
    notices: list[str] = Field(description="Notices about parts of the upload that mean more than the stored set.")
    source: Annotated[dict[str, Any], From("written")] = Field(
        description="The hand-written constraints, in canonical form: uploading them again changes nothing."
    )

    @classmethod
    def from_domain(cls, report: ConstraintReport) -> Self:
        return cls.copying(report.record, **set_document(report.constraint_set), warnings=report.warnings)


class ConstraintsVersions(PartModel[ConstraintsSummary]):
    """Every constraint set that a stream has had, the newest first. Open transactions may follow older sets."""


class DeadAlternativeModel(WireModel):
    """An alternative of a pattern that can never match."""

    alternative: int = Field(description="Counts from 1.")
    atoms: list[str] = Field(description="A minimal set of its steps in conflict.")
    constraints: list[str] = Field(description="A minimal set of constraints that they clash with.")
    forbidden: list[str] = Field(description="Types that must not come, if the steps alone would be possible.")
    text: str


class RedundantStepModel(WireModel):
    """A redundant step: the constraints imply its event."""

    alternative: int = Field(description="Counts from 1.")
    atom: str
    text: str


class LikelyEndingModel(WireModel):
    """The event type that is expected to be the first to terminate a partial match, for the largest number of them."""

    event: str
    required_before: list[str] = Field(description="Events that have to come before it.")
    form: str
    probability: float = Field(description="Estimated share of the transactions in which it comes.")


class StateModel(WireModel):
    """A forecast for partial matches with the same bound steps: how many are terminated early, and by which event."""

    alternative: int = Field(description="Counts from 1.")
    bound: list[str]
    probability: float = Field(description="Estimated share of the transactions in which they are terminated early.")
    earliest: LikelyEndingModel | None = Field(
        description="The event that terminates them first most often; null: none does."
    )
    text: str


class CandidateModel(WireModel):
    """Types and symbols that the monitor might distinguish.

    If the monitor cannot distinguish all types and symbols, some candidates are chosen.
    """

    names: list[str]
    benefit: float = Field(description="Estimated work and state that they save per transaction.")
    states_added: int
    is_chosen: bool


class MonitorModel(WireModel):
    """The monitor of a constraint set: the types and symbols that it distinguishes, and its size."""

    distinguishes: list[str] = Field(description="Types and symbols.")
    estimated_states: int = Field(description="At most this number of monitor states; counting stops above the limit.")
    max_states: int = Field(
        description="The setting max_monitor_states; transactions that need more continue with bit tables, which "
        "never terminate a partial match wrongly."
    )
    is_whole: bool = Field(description="Whether every constraint fits within the limit.")
    left_out: list[str] = Field(description="Constraints that do not fit.")
    watched: list[str] = Field(description="Longer clauses that the bit tables watch.")
    candidates: list[CandidateModel] = Field(
        description="The names that were considered, in the order of the decisions."
    )
    text: str


class PatternAnalysisModel(WireModel):
    """The analysis of one pattern."""

    pattern: str
    can_match: bool
    dead_alternatives: list[DeadAlternativeModel]
    redundant_steps: list[RedundantStepModel]
    states: list[StateModel]


class UnusedModel(WireModel):
    """The constraints by which no partial match of any pattern is terminated. They may still lead to deviations."""

    constraints: list[str]
    visited_states: int = Field(description="Monitor states that were examined.")
    is_complete: bool = Field(description="Whether these are all monitor states.")


class AnalysisModel(WireModel):
    """The analysis of a constraint set and of the patterns whose partial matches it terminates early."""

    stream: str
    version: int
    monitor: MonitorModel
    patterns: list[PatternAnalysisModel]
    unused: UnusedModel

    @classmethod
    def of(cls, record: RegisteredConstraints, inspection: SetInspection) -> Self:
        return cls.model_validate({"stream": record.stream, "version": record.version, **inspection.to_document()})
