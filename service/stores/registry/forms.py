"""The forms of operators in the registry: one for patterns, one for all other kinds."""

from __future__ import annotations

from functools import partial

from service.errors import OperatorOnOtherStream, PatternOnOtherStream, UnknownOperator, UnknownPatternName
from service.stores.connection import PREFIX
from service.stores.registry.changes import PartChange
from service.stores.registry.operators import Form
from service.stores.registry.registered import (
    OperatorPart,
    RegisteredOperator,
    read_operator,
    read_pattern,
)
from shards import SUPPRESSION
from streams import (
    ControlRecord,
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


def pattern_form(budget: WorkBudget) -> Form:
    """The form of patterns; ``budget`` limits the work of one that is registered or resumed from now on."""

    def on(pattern: RegisteredOperator, start: Start) -> PatternOn:
        return PatternOn(
            name=pattern.name,
            version=pattern.version,
            text=pattern.text,
            is_guarded=pattern.is_guarded,
            start=start,
            route=pattern.route,
            budget=budget,
            suppression=pattern.body.get(SUPPRESSION),
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
        parts=_started_parts,
    )


def _started_parts(
    record: RegisteredOperator, before: RegisteredOperator | None, control: ControlRecord | None
) -> tuple[PartChange, ...]:
    """The starts of a pattern's parts. They are never stopped, as alerts may be on their way (ADR 72).

    Open incidents continue in another version, or are closed by it (ADR 75).
    """
    if not isinstance(control, PatternOn):
        return ()
    return tuple(_part_change(one, OperatorOn(one.definition(record.version), "keep"), "") for one in record.parts)


def operator_form(kind: str) -> Form:
    """The form of a kind without records of its own; an empty kind: of all such kinds, for reading only."""
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
