"""Patterns and their dry runs on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from api.schemas.constraints import DeadAlternativeModel, RedundantStepModel, StateModel
from api.schemas.results import EndingSummary, Route, Row, SuspensionModel
from api.wire import ChangesModel, From, PartModel, Text, Time, WireModel
from nfa import Pattern, pattern_to_json, rows_met
from service import (
    USUAL_SEVERITY,
    Condition,
    OperatorDraft,
    PatternCounts,
    PatternInspection,
    PatternReport,
    RegisteredPattern,
    Severity,
    SkippedBacklog,
    pattern_draft,
)
from shards import SUPPRESSION, shown_quiet

Switch: TypeAlias = Literal["on", "off"]
State: TypeAlias = Literal["draft", "active", "paused", "suspended", "retired"]
FirstStateMember: TypeAlias = Annotated[
    Literal["draft", "active", "paused"],
    Field(
        description="A 'draft' is checked and stored; 'activate' starts it. A 'paused' one sees no events until "
        "'resume'; an active former version is paused."
    ),
]


class SuppressModel(WireModel):
    """Suppression of a pattern's alerts: for some time after an alert, further alerts of its group are suppressed."""

    by: list[str] = Field(
        default_factory=list,
        description="Columns of RETURN, or the key, whose values form the group; none: one group.",
    )
    for_: str = Field(
        alias="for", description="Event time after an alert in which further alerts are suppressed, such as '1 h'."
    )


class IncidentRules(WireModel):
    """The rules by which the alerts of a pattern become incidents."""

    by: list[str] | None = Field(
        None,
        description="Columns of RETURN, or the key, whose values form the group (default: as in 'suppress').",
    )
    close_after: str = Field(description="Event time without an alert after which an incident closes, such as '2 h'.")


class ResolvesModel(WireModel):
    """The incidents that alerts of this pattern close: open incidents of another pattern with the same values."""

    pattern: str = Field(description="The pattern whose incidents are closed.")
    by: list[str] = Field(
        default_factory=list,
        description="Columns of RETURN, or the key, with the values of the other pattern's group, in the same order.",
    )


class NewPattern(WireModel):
    """A pattern to register."""

    stream: str
    constraints: Switch = Field(
        "on",
        description="With 'off' the stream's constraints do not terminate its partial matches: for patterns that "
        "look for violations of the constraints.",
    )
    state: FirstStateMember = "active"
    start: Literal["fresh", "migrate"] = Field(
        "fresh",
        description="What to do with the partial matches of the former version: drop them ('fresh'), or let the "
        "former version complete them ('migrate').",
    )
    severity: Severity | None = Field(
        None,
        description="Severity of its alerts, by which webhooks may filter (default: medium). "
        "A change makes no new version, and applies to new alerts.",
    )
    suppress: SuppressModel | None = Field(None, description="Suppress further alerts of a group after an alert.")
    incident: IncidentRules | None = Field(None, description="Collect the alerts of each group in an incident.")
    resolves: ResolvesModel | None = Field(None, description="Alerts close the open incident of another pattern.")
    text: str | None = Field(
        None, description="The pattern in the pattern language, or as PATTERN name MATCH_RECOGNIZE (…)."
    )
    definition: dict[str, Any] | None = Field(
        None, description="Instead of the text: the pattern's JSON form. Its schema is at /v1/schemas/pattern."
    )

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        if (self.text is None) == (self.definition is None):
            raise ValueError("send either 'text' or 'definition'")
        return self

    def to_domain(self, parsed: Pattern, condition: Condition) -> OperatorDraft:
        return pattern_draft(
            name=parsed.name,
            text=parsed.text if self.text is None else self.text,
            is_guarded=self.constraints == "on",
            start=self.start,
            severity=self.severity,
            quiet={
                name: rules.model_dump(by_alias=True, exclude_none=True)
                for name in ("suppress", "incident", "resolves")
                if (rules := getattr(self, name)) is not None
            },
            state=self.state,
            condition=condition,
        )


class PatternChanges(ChangesModel):
    """Changes of a pattern. The text of a pattern is changed by `PUT`."""

    defaults = MappingProxyType({"severity": USUAL_SEVERITY})

    severity: Severity = Field(description="Severity of its new alerts, by which webhooks may filter. Null: medium.")


class PatternModel(WireModel):
    """A registered pattern."""

    name: str
    stream: str
    version: int = Field(
        description="Counts from 1 for each name; a change of text or constraints is the next version."
    )
    text: str
    constraints: Switch = Field(description="Whether the stream's constraints terminate its partial matches early.")
    severity: Severity = Field(description="Severity of its alerts.")
    state: State = Field(description="Only an active pattern sees events.")
    suspension: SuspensionModel | None = Field(
        description="Why the pattern is suspended; null in other states. Another version, or `resume`, starts it again."
    )
    route: Text = Field(
        description="The stream's further key by which its events are grouped; null: the correlation key."
    )
    into: str | None = Field(
        None, description="The derived stream whose events its matches become; null: they become alerts."
    )
    suppress: SuppressModel | None = Field(None, description="Which of its alerts are suppressed; null: none.")
    incident: IncidentRules | None = Field(None, description="How its alerts become incidents; null: they do not.")
    resolves: ResolvesModel | None = Field(None, description="The incidents that its alerts close; null: none.")
    created_at: Time

    @classmethod
    def from_domain(cls, pattern: RegisteredPattern, **members: Any) -> Self:
        """Convert a pattern. ``members`` are further members of a subclass."""
        return cls.copying(
            pattern,
            constraints="on" if pattern.is_guarded else "off",
            suspension=None if pattern.suspension is None else SuspensionModel.copying(pattern.suspension),
            into=None if SUPPRESSION in pattern.body else pattern.into or None,
            **shown_quiet(pattern.body),
            **members,
        )


class SkippedModel(WireModel):
    """The backlog that a pause with `now=true` skips."""

    events: int = Field(
        description="Events of all streams that waited to be matched. The operator sees only events of steps "
        "that had already begun."
    )
    positions: Annotated[dict[int, str], From("after")] = Field(
        description="The last matched position of the log, by shard."
    )


class CheckedPattern(PatternModel):
    """A registered pattern in both forms, with warnings about parts that can never match or are probably mistakes."""

    skipped: SkippedModel | None = Field(
        default=None, description="The backlog that it skips, in the answer to `pause` with `now=true`; null elsewhere."
    )
    definition: dict[str, Any] = Field(description="The JSON form of the text; its schema is at /v1/schemas/pattern.")
    warnings: list[str]

    @classmethod
    def from_report(cls, report: PatternReport, **members: Any) -> Self:
        """Convert a pattern with its warnings. ``members`` are further members of a subclass."""
        definition = pattern_to_json(report.parsed)
        return cls.from_domain(report.pattern, definition=definition, warnings=report.warnings, **members)

    def with_skipped(self, skipped: SkippedBacklog | None) -> Self:
        return self.model_copy(update={"skipped": skipped and SkippedModel.from_domain(skipped)})


class FailingConditionModel(WireModel):
    """An event that terminates partial matches."""

    event: str = Field(description="Type of the event.")
    bound: list[str] = Field(description="The steps that are bound before it.")
    symbols: list[str] = Field(description="Conditions of the constraint set that the event has to meet.")
    required_before: list[str] = Field(description="Events that have to come before it.")
    form: str = Field(description="Form of the reason: p1 to p5, rule, workflow, or end.")
    constraints: list[str] = Field(description="The minimal chain of constraints.")
    atoms: list[str] = Field(description="The steps that it makes impossible.")
    forbidden: list[str] = Field(description="Forbidden types that must come after it.")
    is_takable: bool = Field(description="Whether a partial match could have bound it; the extended match stays alive.")
    text: str = Field(description="The condition as a sentence.")


class MetRowsModel(WireModel):
    """The rows of a table that the events of a step are compared with, in words, for a pattern with FOR EACH ROW."""

    step: str
    meets: str


class PatternDetail(CheckedPattern):
    """A registered pattern, the effect of the constraints, and statistics."""

    dead_alternatives: list[DeadAlternativeModel]
    failing_conditions: list[FailingConditionModel]
    redundant_steps: list[RedundantStepModel]
    states: list[StateModel] = Field(description="Forecast for partial matches, by state.")
    ending_summary: EndingSummary = Field(
        description="In how many transactions it could no longer match so far, and why."
    )
    met_rows: list[MetRowsModel] = Field([], description="With FOR EACH ROW: which rows the events of each step meet.")

    @classmethod
    def of(cls, report: PatternReport, inspection: PatternInspection, endings: Sequence[Mapping[str, Any]]) -> Self:
        """Convert a pattern, its analysis, and the counters of its early terminations."""
        return cls.from_report(
            report,
            **inspection.to_document(),
            ending_summary=EndingSummary.of(report.pattern.stream, report.pattern.name, endings),
            met_rows=[{"step": step, "meets": meets} for step, meets in rows_met(report.parsed)],
        )


class PatternList(PartModel[PatternModel]):
    """All patterns, by name."""


class PatternVersion(WireModel):
    """One version of a pattern."""

    version: int
    text: str
    constraints: Switch
    route: Text
    suppress: SuppressModel | None = None
    incident: IncidentRules | None = None
    resolves: ResolvesModel | None = None
    created_at: Time
    current: bool = Field(description="Whether it is the newest version, to which the pattern's state applies.")

    @classmethod
    def of(cls, pattern: RegisteredPattern, last: int) -> Self:
        """Convert a version of a pattern. ``last`` is the number of the pattern's latest version."""
        constraints = "on" if pattern.is_guarded else "off"
        quiet = shown_quiet(pattern.body)
        return cls.copying(pattern, constraints=constraints, **quiet, current=pattern.version == last)


class PatternVersions(PartModel[PatternVersion]):
    """All versions of a pattern, the oldest first."""


class MissingCount(WireModel):
    """The number of partial matches whose WITHIN has passed while the same steps were missing."""

    missing_steps: Annotated[str, From("missing")] = Field(description="The steps, separated by commas.")
    count: int


class PatternStatistics(WireModel):
    """Counts of a pattern's results since it was first registered, over all versions."""

    name: Annotated[str, From("pattern.name")]
    stream: Annotated[str, From("pattern.stream")]
    state: Annotated[State, From("pattern.state")]
    version: Annotated[int, From("pattern.version")]
    alerts: int = Field(description="Without suppressed ones.")
    suppressed_alerts: int
    would_be_lost_count: Annotated[int, From("would_be_lost")] = Field(
        description="With 'prune: shadow': alerts that pruning would have lost."
    )
    last_alert_at: Time | None = Field(description="`detected_at` of the newest alert that is kept.")
    corrections: int
    timeouts: int
    timeouts_by_missing: list[MissingCount]
    ending_summary: EndingSummary

    @classmethod
    def from_domain(cls, counts: PatternCounts) -> Self:
        pattern = counts.pattern
        return cls.copying(
            counts,
            last_alert_at=None if counts.last_alert is None else counts.last_alert["detected_at"],
            timeouts=sum(count["count"] for count in counts.timeouts),
            timeouts_by_missing=[MissingCount.copying(count) for count in counts.timeouts],
            ending_summary=EndingSummary.of(pattern.stream, pattern.name, counts.endings),
        )


class NewDryRun(WireModel):
    """A pattern to be tried on the newest events."""

    stream: str | None = Field(None, max_length=200, description="A declared stream; may be left out with `name`.")
    text: str | None = Field(None, description="The pattern language.")
    definition: dict[str, Any] | None = Field(None, description="Instead of the text: the pattern's JSON form.")
    name: str | None = Field(
        None, max_length=200, description="Instead of both: a registered pattern, such as a draft."
    )
    constraints: Switch | None = Field(
        None,
        description="Whether the stream's constraints terminate partial matches early (default: 'on', or as "
        "registered).",
    )
    suppress: SuppressModel | None = Field(
        None, description="Which alerts would be suppressed (default: none, or as registered)."
    )
    events: int = Field(10_000, ge=1, le=100_000, description="Number of the stream's newest events to match.")

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        if [self.text, self.definition, self.name].count(None) != 2:
            raise ValueError("send exactly one of 'text', 'definition' and 'name'")
        if self.name is None and self.stream is None:
            raise ValueError("name the 'stream' to try it on")
        return self


class DryMatch(WireModel):
    """A match that would have been an alert, had the pattern been registered."""

    key: str
    row: Row = None
    start: Time
    end: Time
    bindings: dict[str, list[str]] = Field(description="Event ids by alias.")
    would_be_lost: bool


class DryEnding(WireModel):
    """The number of transactions in which the pattern could no longer match, for one reason."""

    form: str
    reason: str
    count: int


class DryRunModel(WireModel):
    """The results that a pattern would have had over the newest events."""

    pattern: str
    stream: str
    route: Route = None
    events: int = Field(
        description="The number of events that were matched; fewer than requested if the log holds no more."
    )
    first_time: Time | None
    last_time: Time | None
    matched: int = Field(description="Without suppressed ones.")
    suppressed: int = Field(0, description="Matches whose alerts would be suppressed.")
    matches: list[DryMatch] = Field(description="The first 100, by their end.")
    endings: int
    ending_reasons: list[DryEnding] = Field(description="The most frequent reason first.")
    timeouts: int
    dropped: int = Field(description="Matches beyond a limit, which are not counted above.")
    partial_matches: int = Field(description="The number of events bound in partial matches at the end.")
    failing_conditions: list[FailingConditionModel] = Field(
        description="Events that would end its partial matches early, by the constraints of the stream."
    )
    warnings: list[str]
    duration_s: float
