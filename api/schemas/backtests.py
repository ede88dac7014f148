"""Backtests on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from api.schemas.patterns import SuppressModel
from api.schemas.results import Row
from api.wire import From, PartModel, Time, WireModel
from service import Backtest, BacktestDraft, BacktestStatus, Page, PatternChoice, Pruning


class PatternReference(WireModel):
    """A registered pattern by name, or the text of a pattern. With `suppress`, some of its alerts are suppressed."""

    name: str | None = None
    version: int | None = Field(None, ge=1, description="Version of the registered pattern (default: the current one).")
    text: str | None = Field(None, description="Instead of the name.")
    suppress: SuppressModel | None = Field(None, description="Instead of the suppression of the registered pattern.")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.name is None) == (self.text is None):
            raise ValueError("give either 'name' or 'text'")
        if self.version is not None and self.name is None:
            raise ValueError("a 'version' is of a registered pattern: give its 'name'")
        return self

    def to_domain(self) -> PatternChoice:
        return PatternChoice(**self.model_dump(by_alias=True))


class BacktestSource(WireModel):
    """The source of the events: a file or folder, or the log."""

    path: str | None = Field(None, min_length=1, description="A file or folder below FORESTALL_BACKTEST_DIR.")
    log: Literal[True] | None = Field(None, description="The events of the stream that the log still holds.")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.path is None) == (self.log is None):
            raise ValueError('give either {"path": ...} or {"log": true}')
        return self


class NewBacktest(WireModel):
    """A backtest to run."""

    stream: str = Field(description="A declared stream, whose key, end events and constraints apply.")
    pattern: str | PatternReference = Field(description="The text of a pattern, or a registered one.")
    against: str | PatternReference | None = Field(None, description="The pattern to compare it with.")
    source: BacktestSource
    pruning: Pruning = Field(
        "on", description="Whether constraints terminate partial matches early; `compare`: both ways."
    )
    is_open: bool | None = Field(
        None, description="Whether transactions continue after the last event (default: only with `log`)."
    )

    def to_domain(self) -> BacktestDraft:
        return BacktestDraft(
            stream=self.stream,
            pattern=_choice(self.pattern),
            against=None if self.against is None else _choice(self.against),
            path=self.source.path,
            pruning=self.pruning,
            is_open=self.is_open,
        )


class BacktestPattern(WireModel):
    """A pattern of a backtest."""

    name: str
    version: int = Field(description="1 for an unregistered pattern.")
    text: str


class VariantModel(WireModel):
    """The results and the cost of one variant of a backtest."""

    name: Literal["pattern", "against", "no_prune", "no_constraints"] = Field(
        description="The variant; 'pattern' is the tested one."
    )
    alerts: int = Field(description="Without suppressed ones.")
    suppressed_alerts: int = 0
    derived_events: int = Field(0, description="Events of derived streams.")
    timeouts: int
    endings: int
    deviations: int
    corrections: int
    dead_letters: int
    alerts_by_pattern: dict[str, int]
    dead_letters_by_code: dict[str, int]
    released: int = Field(description="Bound events that were dropped because of constraints.")
    open_traces: int = Field(description="Transactions that were open at the end of the events.")
    peak_held: int = Field(description="Most events held in partial matches at once, summed over the shards.")
    peak_state_bytes: int = Field(description="Most bytes of partial matches after a batch, summed over the shards.")
    busy_s: float = Field(description="Seconds that threads spent on matching.")


class ComparisonModel(WireModel):
    """A comparison of the tested variant's alerts with another variant's. Ratios are relative to the other variant."""

    compared_with: str = Field(alias="with", description="Name of the other variant.")
    added: int = Field(description="Alerts, or events of derived streams, that only 'pattern' has.")
    lost: int = Field(description="Alerts, or events of derived streams, that only the other variant has.")
    same: int
    unlisted: int = Field(description="Added and lost results that are counted but not listed, as there are too many.")
    peak_held_ratio: float | None
    peak_state_bytes_ratio: float | None
    busy_ratio: float | None

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class BacktestSummary(WireModel):
    """The result of a backtest."""

    events: int
    first_time: Time | None = Field(description="Time of the earliest event.")
    last_time: Time | None = Field(description="Time of the newest event.")
    variants: list[VariantModel]
    comparisons: list[ComparisonModel]
    alerts_kept: int = Field(description="Alerts that can be listed.")
    warnings: list[str] = Field(
        [], description="Names of the pattern that no event has; none if Spark read the events."
    )
    read_s: float = Field(description="Seconds of wall clock for reading the events.")
    match_s: float = Field(description="Seconds of wall clock for matching them.")


class BacktestFailure(WireModel):
    """The reason why a backtest failed."""

    code: str
    detail: str


class BacktestModel(WireModel):
    """A backtest and its state."""

    id: str
    stream: str
    patterns: list[BacktestPattern]
    against: list[BacktestPattern]
    source: BacktestSource
    pruning: Pruning
    is_open: Annotated[bool, From("question.is_open")]
    state: Annotated[BacktestStatus, From("status")]
    progress: float = Field(ge=0, le=1, description="The share that is done.")
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    failure: Annotated[BacktestFailure | None, From("error")]

    @classmethod
    def from_domain(cls, backtest: Backtest, **members: Any) -> Self:
        """Return the wire form of a backtest. ``members`` are further members of a subclass."""
        question = backtest.question
        compared: Pruning = "off" if question["prune"] == "off" else "on"
        return cls.copying(
            backtest,
            patterns=[BacktestPattern.copying(pattern) for pattern in question["patterns"]],
            against=[BacktestPattern.copying(pattern) for pattern in question["against"]],
            source=BacktestSource(log=True) if backtest.path is None else BacktestSource(path=backtest.path),
            pruning="compare" if question["compares_pruning"] else compared,
            **members,
        )


class BacktestDetail(BacktestModel):
    """A backtest, and its result once it is done."""

    result: BacktestSummary | None

    @classmethod
    def of(cls, backtest: Backtest, summary: Mapping[str, Any] | None) -> Self:
        return cls.from_domain(backtest, result=summary)


class BacktestList(PartModel[BacktestModel]):
    """Backtests, the newest first."""


class BacktestAlert(WireModel):
    """An alert of a backtest: found, added or lost."""

    change: Literal["added", "lost"] | None = Field(
        description="In a comparison: whether only 'pattern' has it, or only the other variant; null otherwise."
    )
    compared_with: list[str] = Field(description="The comparisons in which it is added or lost.")
    id: str
    pattern: str
    version: int
    key: str
    start: Time
    end: Time
    detected_at: Time
    row: Row = None
    bindings: dict[str, list[str]] = Field(description="Event ids by alias.")
    returns: dict[str, bool | int | float | str | None] = Field({}, description="Values of the columns of RETURN.")
    why: str
    decided_by: str | None = None
    deviating: bool = False
    would_be_lost: bool = False


class BacktestAlertList(WireModel):
    """A page of the alerts of a backtest, sorted by their end."""

    items: list[BacktestAlert]
    next: str | None = Field(description="Send as 'after' for the next page; null when this is the last.")

    @classmethod
    def from_domain(cls, page: Page) -> Self:
        items = [BacktestAlert.from_domain(alert) for alert in page.items]
        return cls(items=items, next=page.next)


def _choice(pattern: str | PatternReference) -> PatternChoice:
    return PatternChoice(text=pattern) if isinstance(pattern, str) else pattern.to_domain()
