"""The results of mining, as values and as a document for upload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from constraints import ConstraintSet, Part, Prior, parse_constraints, to_document
from streams import format_time
from workflows.errors import InvalidWorkflow

LEAST_SUPPORT = 5
USUAL_SHARE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class MiningSettings:
    """Thresholds of mining.

    Attributes:
        min_support: Least number of traces that activate a constraint. A number below 1 is a share of all traces. None
            means 1 % of the traces, but at least 5.
        min_confidence: Least share of the activating traces that keep the constraint, from 0 to 1.
        min_expected: Least number of violations of an ``exclusive`` or ``require`` that would be expected if its two
            types were independent. With fewer, the constraint could hold by chance. Observed violations raise this
            bound. 0 switches the test off.
    """

    min_support: float | None = None
    min_confidence: float = 1.0
    min_expected: float = 5.0
    has_rules: bool = False

    def __post_init__(self) -> None:
        if self.min_support is not None and not self.min_support > 0:
            raise InvalidWorkflow(
                f"min_support is a part of the traces below 1, or a number of traces from 1 on, got {self.min_support}"
            )
        if not 0 < self.min_confidence <= 1:
            raise InvalidWorkflow(f"min_confidence is above 0 and at most 1, got {self.min_confidence}")
        if not self.min_expected >= 0:
            raise InvalidWorkflow(f"min_expected is a number of traces, 0 or more, got {self.min_expected}")

    def least_traces(self, traces: int) -> float:
        """Return the least number of activating traces that ``min_support`` requires in a log of ``traces`` traces."""
        if self.min_support is None:
            return max(LEAST_SUPPORT, USUAL_SHARE * traces)
        return self.min_support * traces if self.min_support < 1 else self.min_support


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSummary:
    """The name, size and time span of a log. Times are microseconds since 1970 UTC, or None if unknown."""

    name: str = ""
    traces: int = 0
    events: int = 0
    first_us: int | None = None
    last_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedConstraint:
    """A constraint found in a log. ``support`` traces activate the constraint, and ``violations`` of them break it."""

    part: Part
    support: int
    violations: int

    @property
    def confidence(self) -> float:
        """The share of the activating traces that keep the constraint."""
        return 1.0 - self.violations / self.support

    def to_document(self) -> dict[str, Any]:
        return {
            "constraint": str(self.part),
            "support": self.support,
            "confidence": round(self.confidence, 6),
            "violations": self.violations,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedConstraints:
    """The result of mining a log.

    Attributes:
        all: All constraints within the thresholds, by kind and names.
        entailed: Constraints outside the thresholds that follow from rules in ``all``. A document with these rules
            implies them.
        useful: All constraints except those that follow from the others. A constraint is left out only if the
            constraints that imply it have at most as many violations, so no information is lost.
        withdrawn: Useful constraints that contradict more reliable ones. Empty at confidence 1.
    """

    log: LogSummary
    settings: MiningSettings
    all: tuple[MinedConstraint, ...]
    entailed: tuple[MinedConstraint, ...]
    useful: tuple[MinedConstraint, ...]
    withdrawn: tuple[MinedConstraint, ...] = ()

    def to_document(self, *, is_complete: bool = False) -> dict[str, Any]:
        """Return a document of the useful constraints for upload.

        If ``is_complete``, it also has the redundant ones.
        """
        listed = self.all if is_complete else self.useful
        document = to_document(ConstraintSet.of(mined.part for mined in listed))
        held = parse_constraints(document, max_constraints=len(self.all) + len(document)).constraint_set.parts
        counts = {mined.part: mined for mined in (*self.all, *self.entailed)}
        return {
            **document,
            "settings": {"on_violation": "report"},
            "mined": {
                "log": self.log.name,
                "traces": self.log.traces,
                "events": self.log.events,
                "from": None if self.log.first_us is None else format_time(self.log.first_us),
                "until": None if self.log.last_us is None else format_time(self.log.last_us),
                "min_support": self.settings.least_traces(self.log.traces),
                "min_confidence": self.settings.min_confidence,
                "min_expected": self.settings.min_expected,
                "rules": self.settings.has_rules,
                "constraints": [counts[part].to_document() for part in held],
            },
        }

    def counts(self) -> Mapping[str, int]:
        """Return the number of useful constraints of each kind. The kind of ``prior(A, A)`` is ``at most once``."""
        counts: dict[str, int] = {}
        for mined in self.useful:
            kind = kind_of(mined.part)
            counts[kind] = counts.get(kind, 0) + 1
        return counts


def kind_of(part: Part) -> str:
    """Return the name of the kind of a mined constraint, by which constraints are counted and listed."""
    if isinstance(part, Prior) and part.earlier == part.later:
        return "at most once"
    return part.kind
