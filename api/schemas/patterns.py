"""Patterns on the wire."""

from __future__ import annotations

from typing import Self

from pydantic import ConfigDict, Field

from api.wire import WireModel
from constraints import FailingCondition
from nfa import describe_atom
from service import PatternReport
from service.stores import RegisteredPattern
from streams import format_time


class NewPattern(WireModel):
    """A pattern to register."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "stream": "orders",
                    "text": "PATTERN expensive_cancelled EVENT SEQ(GenerateQuote q [totalPrice > 200], CancelOrder c)",
                }
            ]
        }
    )

    stream: str
    text: str = Field(description="The pattern language; the pattern's name is in the text.")


class PatternModel(WireModel):
    """A registered pattern."""

    name: str
    stream: str
    version: int = Field(description="Counts from 1 for each name; another text is the next version.")
    text: str
    registered_at: str

    @classmethod
    def from_domain(cls, pattern: RegisteredPattern) -> Self:
        """The wire form of a pattern."""
        return cls(
            name=pattern.name,
            stream=pattern.stream,
            version=pattern.version,
            text=pattern.text,
            registered_at=format_time(pattern.registered_us),
        )


class CheckedPattern(PatternModel):
    """A registered pattern, and what of it can never match."""

    warnings: list[str]

    @classmethod
    def from_report(cls, report: PatternReport) -> Self:
        """The wire form of a pattern with its warnings."""
        plain = PatternModel.from_domain(report.pattern)
        return cls(**plain.model_dump(), warnings=list(report.warnings))


class FailingConditionModel(WireModel):
    """An event that ends partial matches."""

    event: str = Field(description="Type of the event.")
    bound: list[str] = Field(description="The steps that are bound before it.")
    form: str = Field(description="Form of the reason: p1 to p5, or end.")
    constraints: list[str] = Field(description="The minimal chain of constraints.")
    atoms: list[str] = Field(description="The steps that it makes impossible.")
    text: str = Field(description="The condition as a sentence.")

    @classmethod
    def from_domain(cls, condition: FailingCondition) -> Self:
        """The wire form of a failing condition."""
        return cls(
            event=condition.event_type,
            bound=[describe_atom(atom) for atom in condition.bound],
            form=condition.explanation.form,
            constraints=[str(part) for part in condition.explanation.constraints],
            atoms=[describe_atom(atom) for atom in condition.explanation.atoms],
            text=condition.text,
        )


class PatternDetail(CheckedPattern):
    """A registered pattern with its failing conditions."""

    failing_conditions: list[FailingConditionModel]

    @classmethod
    def of(cls, report: PatternReport, conditions: tuple[FailingCondition, ...]) -> Self:
        """The wire form of a pattern and its failing conditions."""
        return cls(
            **CheckedPattern.from_report(report).model_dump(),
            failing_conditions=[FailingConditionModel.from_domain(condition) for condition in conditions],
        )


class PatternList(WireModel):
    """All patterns, by name."""

    items: list[PatternModel]
