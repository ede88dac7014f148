"""The static analysis of constraints and patterns on the wire."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from api.wire import WireModel
from service import RegisteredConstraints, SetInspection


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
    """The event that is expected to end partial matches first."""

    event: str
    required_before: list[str] = Field(description="Events that have to come before it.")
    form: str
    probability: float = Field(description="Estimated share of the transactions in which it comes.")


class StateModel(WireModel):
    """A forecast for the partial matches that have bound certain steps."""

    alternative: int = Field(description="Counts from 1.")
    bound: list[str]
    probability: float = Field(description="Estimated share of the transactions in which they are terminated early.")
    earliest: LikelyEndingModel | None = Field(
        description="The event that terminates them first most often; null: none does."
    )
    text: str


class CandidateModel(WireModel):
    """Names that were considered when the monitor could not distinguish all names."""

    names: list[str]
    benefit: float = Field(description="Estimated work and state that they save per transaction.")
    states_added: int
    is_chosen: bool


class MonitorModel(WireModel):
    """The monitor of a constraint set: the names that it distinguishes, and its size."""

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
    """Constraints that terminate no partial match of any pattern. They may still find deviations."""

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
    def of(cls, record: RegisteredConstraints, found: SetInspection) -> Self:
        """The wire form of an analysis."""
        return cls.model_validate({"stream": record.stream, "version": record.version, **found.to_document()})
