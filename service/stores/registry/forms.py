"""The forms of operators in the registry: one for patterns, one for all other kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from service.errors import OperatorOnOtherStream, PatternOnOtherStream, UnknownOperator, UnknownPatternName
from service.stores.conditions import ANY, Condition
from service.stores.connection import PREFIX
from service.stores.registry.changes import PartChange
from service.stores.registry.operators import Form
from service.stores.registry.registered import (
    OperatorPart,
    RegisteredOperator,
    RegisteredPattern,
    read_operator,
    read_pattern,
)
from service.stores.severities import Severity
from streams import (
    ControlRecord,
    Input,
    OperatorOff,
    OperatorOn,
    OperatorPause,
    PatternOff,
    PatternOn,
    PatternPause,
    Start,
    WorkBudget,
)

PATTERNS_KEY = PREFIX + "patterns"
OPERATORS_KEY = PREFIX + "operators"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternDraft:
    """A pattern to be registered.

    Attributes:
        is_guarded: Whether the stream's constraints terminate its partial matches early.
        route: Name of the further key whose traces it reads; empty for those of the correlation key.
        start: What to do with the partial matches of the version before: drop them (``fresh``), or let that version
            complete them (``migrate``).
        severity: Of its alerts; None: as before, and ``medium`` at first.
        is_draft: Whether it is only stored, to be matched later.
        into: The derived stream whose events its matches are; empty: they are alerts.
    """

    name: str
    text: str
    is_guarded: bool = True
    route: str = ""
    start: Start = "fresh"
    severity: Severity | None = None
    is_draft: bool = False
    condition: Condition = ANY
    into: str = ""

    def start_behind(self, record: RegisteredPattern) -> Start:
        """How the partial matches of the version before are handled: as the draft requests."""
        return self.start

    def is_said_by(self, record: RegisteredPattern) -> bool:
        """Whether the pattern is already registered with these members."""
        return (record.text, record.is_guarded, record.route) == (self.text, self.is_guarded, self.route)

    def record(self, stream: str, version: int, now_us: int) -> RegisteredPattern:
        """The record of a version."""
        return RegisteredPattern(
            name=self.name,
            stream=stream,
            text=self.text,
            version=version,
            is_active=True,
            registered_us=now_us,
            is_guarded=self.is_guarded,
            route=self.route,
            into=self.into,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDraft:
    """An operator to be registered.

    Attributes:
        body: Its definition, read by its kind.
        severity: Of its alerts; None: as before, and ``medium`` at first.
        keeps: Whether it can continue with the state of an operator with another body.
        is_draft: Whether it is only stored, to run later.
        into: The derived stream that it produces; empty: none.
        parts: Further operators that it consists of.
    """

    kind: str
    name: str
    inputs: tuple[Input, ...]
    body: Mapping[str, Any]
    severity: Severity | None = None
    keeps: Callable[[Mapping[str, Any]], bool] = lambda _: False
    is_draft: bool = False
    condition: Condition = ANY
    into: str = ""
    parts: tuple[OperatorPart, ...] = ()

    @property
    def route(self) -> str:
        """Name of the further key of the first input; empty for the correlation key."""
        return self.inputs[0].key

    def start_behind(self, record: RegisteredOperator) -> Start:
        """``keep`` if the kind can continue with the state of the version before, else ``fresh``."""
        return "keep" if self.keeps(record.body) else "fresh"

    def is_said_by(self, record: RegisteredOperator) -> bool:
        """Whether the operator is already registered with these members."""
        registered = record.definition.inputs, record.body, record.parts
        return registered == (self.inputs, self.body, self.parts)

    def record(self, stream: str, version: int, now_us: int) -> RegisteredOperator:
        """The record of a version."""
        return RegisteredOperator(
            kind=self.kind,
            name=self.name,
            stream=stream,
            version=version,
            is_active=True,
            registered_us=now_us,
            inputs=tuple((source.stream, source.key) for source in self.inputs),
            body=self.body,
            route=self.route,
            into=self.into,
            parts=self.parts,
        )


def pattern_form(budget: WorkBudget) -> Form[RegisteredPattern]:
    """The form of patterns; ``budget`` limits the work of one that is registered or resumed from now on."""

    def on(pattern: RegisteredPattern, start: Start) -> PatternOn:
        return PatternOn(
            name=pattern.name,
            version=pattern.version,
            text=pattern.text,
            is_guarded=pattern.is_guarded,
            start=start,
            route=pattern.route,
            budget=budget,
        )

    return Form(
        one="pattern",
        key=PATTERNS_KEY,
        versions_key=PREFIX + "pattern-versions",
        prefix="",
        read=read_pattern,
        on=on,
        pause=PatternPause,
        off=PatternOff,
        unknown=lambda message, name: UnknownPatternName(f"{message}; GET /v1/patterns lists them", pattern=name),
        elsewhere=lambda message, name, stream: PatternOnOtherStream(message, pattern=name, stream=stream),
    )


def operator_form(kind: str) -> Form[RegisteredOperator]:
    """The form of the kinds without records of their own; an empty kind: all of them, for reading only."""
    return Form(
        one=kind,
        key=OPERATORS_KEY,
        versions_key=PREFIX + "operator-versions",
        prefix=f"{kind}/" if kind else "",
        read=read_operator,
        on=lambda operator, start: OperatorOn(operator.definition, start),
        pause=partial(OperatorPause, kind),
        off=partial(OperatorOff, kind),
        unknown=lambda message, name: UnknownOperator(message, kind=kind, name=name),
        elsewhere=lambda message, name, stream: OperatorOnOtherStream(message, kind=kind, name=name, stream=stream),
        parts=_parts,
    )


def _parts(
    record: RegisteredOperator, before: RegisteredOperator | None, control: ControlRecord | None
) -> tuple[PartChange, ...]:
    """The changes of an operator's parts; parts that only the version before had on a stream are switched off."""
    is_seeing = record.is_active and record.state == "active"
    kept = {(part.kind, part.name, part.stream) for part in record.parts}
    gone = [] if before is None else [one for one in before.parts if (one.kind, one.name, one.stream) not in kept]
    return (
        *(_part_change(part, OperatorOff(part.kind, part.name), "") for part in gone),
        *(_part_change(part, _like(control, part, record.version), part.key * is_seeing) for part in record.parts),
    )


def _part_change(part: OperatorPart, control: ControlRecord | None, route: str) -> PartChange:
    return PartChange(user=f"{part.kind}/{part.name}", stream=part.stream, control=control, route=route)


def _like(control: ControlRecord | None, part: OperatorPart, version: int) -> ControlRecord | None:
    """The operator's control record, rewritten for one of its parts."""
    if isinstance(control, OperatorOn):
        return OperatorOn(part.definition(version), control.start)
    if isinstance(control, OperatorPause | OperatorOff):
        return type(control)(part.kind, part.name)
    return None
