"""Patterns on the wire."""

from __future__ import annotations

from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from api.wire import WireModel
from constraints import FailingCondition
from nfa import describe_atom, pattern_to_json
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
                },
                {
                    "stream": "orders",
                    "definition": {
                        "name": "quoted_then_cancelled",
                        "event": {
                            "op": "seq",
                            "items": [
                                {"of": {"op": "atom", "types": ["GenerateQuote"], "alias": "q"}},
                                {"of": {"op": "atom", "types": ["CancelOrder"], "alias": "c"}},
                            ],
                        },
                    },
                },
            ]
        }
    )

    stream: str
    text: str | None = Field(None, description="The pattern language; the pattern's name is in the text.")
    definition: dict[str, Any] | None = Field(
        None, description="Instead of the text: the pattern's JSON form. Its schema is at /v1/schemas/pattern."
    )

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        if (self.text is None) == (self.definition is None):
            raise ValueError("send the pattern as 'text' or as 'definition', one of them")
        return self


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
    """A registered pattern in both forms, and what of it can never match or is probably not meant."""

    definition: dict[str, Any] = Field(description="The JSON form of the text; its schema is at /v1/schemas/pattern.")
    warnings: list[str]

    @classmethod
    def from_report(cls, report: PatternReport) -> Self:
        """The wire form of a pattern with its warnings."""
        plain = PatternModel.from_domain(report.pattern)
        definition = pattern_to_json(report.parsed)
        return cls(**plain.model_dump(), definition=definition, warnings=list(report.warnings))


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
