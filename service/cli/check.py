"""``forestall check``: analyse patterns and constraints without any events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from constraints import (
    Choice,
    ConstraintSet,
    ContradictoryConstraints,
    IdleParts,
    ParsedConstraints,
    SetWarning,
    alternative_text,
    check_set,
    choose,
    idle_parts,
)
from nfa import Atom, Pattern, Query, TraceEnds, all_types_of, build_query, describe_atom, describe_node
from service.cli.columns import Classifier
from service.cli.inputs import Times, chosen_key, read_constraint_file, read_patterns
from service.cli.model_choice import ModelChoice, with_model
from service.cli.output import echo_json
from service.cli.past import EndEvents, PastViolations, read_log
from service.registering.inspection import (
    PatternInspection,
    choice_document,
    idle_document,
    inspect_pattern,
    set_document,
)
from service.registering.strangers import unfollowed_types


@with_model
def check(
    pattern: Annotated[str, typer.Argument(help="Pattern file, or the text of a pattern.")],
    constraints: Annotated[Path | None, typer.Option(help="Constraint document, JSON or YAML.")] = None,
    model: ModelChoice | None = None,
    is_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")] = False,
    log: Annotated[
        Path | None,
        typer.Option(help="Past events (.jsonl, .csv, .xes): count the transactions that break each constraint."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key-path",
            "--key",
            metavar="[TYPE=]PATH",
            help="With --log: path of the correlation key, for all event types or for TYPE.",
        ),
    ] = None,
    times: Annotated[
        Times,
        typer.Option(help="With --log: order of events, as for 'forestall match'."),
    ] = "event",
    lifecycle: Annotated[bool, typer.Option(help="With --log: XES types are name+transition (Pay+complete).")] = False,
    classifier: Classifier = None,
    end: EndEvents = None,
) -> None:
    """Check patterns: can they match, and which events terminate them early? Exit status 1: one can never match."""
    parsed = read_constraint_file(constraints) if constraints else ParsedConstraints(ConstraintSet.of(()))
    patterns = read_patterns(pattern)
    if model is not None:
        parsed = _followed(parsed, model)
    past = PastViolations.mined(parsed)
    if log is not None:
        ends = parsed.constraint_set.trace_ends.union(end or ())
        key_form = chosen_key(key)
        traces = read_log(log, key=key_form, times=times, lifecycle=lifecycle, classifier=classifier, end_events=ends)
        past = PastViolations.counted(parsed, traces)
    try:
        warnings = check_set(parsed.constraint_set)
    except ContradictoryConstraints as clash:
        if not is_json:
            raise
        echo_json(_clashing(parsed, clash, past))
        raise typer.Exit(2) from clash
    report = replace(_CheckReport.of(patterns, parsed, warnings), past=past)
    if is_json:
        echo_json(report.to_document())
    else:
        _print(report)
    raise typer.Exit(0 if report.is_satisfiable else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CheckReport:
    parsed: ParsedConstraints
    warnings: Sequence[SetWarning]
    patterns: Sequence[tuple[Pattern, Query, PatternInspection]]
    choice: Choice
    idle: IdleParts
    past: PastViolations | None = None

    @classmethod
    def of(cls, patterns: Sequence[Pattern], parsed: ParsedConstraints, warnings: Sequence[SetWarning]) -> _CheckReport:
        queries = [build_query(pattern) for pattern in patterns]
        constraint_set = parsed.constraint_set
        return cls(
            parsed=parsed,
            warnings=warnings,
            patterns=[
                (pattern, query, inspect_pattern(query, constraint_set))
                for pattern, query in zip(patterns, queries, strict=True)
            ],
            choice=choose(constraint_set, queries),
            idle=idle_parts(constraint_set, queries),
        )

    @property
    def is_satisfiable(self) -> bool:
        return all(inspection.check.is_satisfiable for _, _, inspection in self.patterns)

    def to_document(self) -> dict[str, Any]:
        return {
            **set_document(self.parsed.constraint_set),
            "notices": list(self.parsed.notices),
            "warnings": [warning.text for warning in self.warnings],
            "clash": None,
            "patterns": [
                {**_pattern_document(*entry), "warnings": _warnings_of(entry[0], self.parsed.constraint_set)}
                for entry in self.patterns
            ],
            "monitor": choice_document(self.choice),
            "unused": idle_document(self.idle),
            "past": None if self.past is None else self.past.to_document(),
        }


def _followed(parsed: ParsedConstraints, choice: ModelChoice) -> ParsedConstraints:
    """Add the constraints of a model to those of a document. The slow model reader is imported only here."""
    from service.cli.models import follow_model  # noqa: PLC0415

    return replace(parsed, constraint_set=follow_model(parsed.constraint_set, choice)[0])


def _clashing(
    parsed: ParsedConstraints, clash: ContradictoryConstraints, past: PastViolations | None
) -> dict[str, Any]:
    return {
        **set_document(parsed.constraint_set),
        "notices": list(parsed.notices),
        "warnings": [],
        "clash": {"constraints": clash.details["constraints"], "text": clash.message},
        "patterns": [],
        "monitor": None,
        "unused": None,
        "past": None if past is None else past.to_document(),
    }


def _pattern_document(pattern: Pattern, query: Query, inspection: PatternInspection) -> dict[str, Any]:
    return {
        "pattern": pattern.name,
        "event": describe_node(pattern.event),
        "listens_to": sorted(query.types),
        "forbids": _forbidden(pattern, query),
        "is_satisfiable": inspection.check.is_satisfiable,
        "asks_for_violation": inspection.check.asks_for_violation,
        "matters": _affecting_constraints(inspection),
        **inspection.to_document(),
    }


def _warnings_of(pattern: Pattern, constraint_set: ConstraintSet) -> list[str]:
    """Return warnings about a pattern. Its transactions are assumed to end, because no stream is known."""
    notices = TraceEnds(has_trace_end=True).warnings_of(pattern)
    return [*unfollowed_types(pattern, constraint_set, ()), *(notice.placed for notice in notices)]


def _print(report: _CheckReport) -> None:
    console = Console(highlight=False, soft_wrap=True, markup=False)
    for warning in report.warnings:
        console.print(f"warning: {warning.text}")
    for pattern, query, inspection in report.patterns:
        console.print(f"{pattern.name}: {describe_node(pattern.event)}")
        console.print(f"listens to {', '.join(sorted(query.types))}")
        if forbidden := _forbidden(pattern, query):
            console.print(f"forbids {', '.join(forbidden)}")
        for mistake in _warnings_of(pattern, report.parsed.constraint_set):
            console.print(f"warning: {mistake}")
        _print_pattern(console, query, inspection)
    if report.parsed.constraint_set.parts:
        console.print(f"\nmonitor: {report.choice.text}")
        if report.idle.parts:
            scope = "" if report.idle.is_complete else f" (only {report.idle.visited} monitor states were examined)"
            console.print(f"constraints that help no pattern{scope}:")
            for part in report.idle.parts:
                console.print(f"  {part}")
    if report.past is not None:
        console.print("\n" + "\n".join(report.past.lines))


def _print_pattern(console: Console, query: Query, inspection: PatternInspection) -> None:
    if inspection.check.is_satisfiable:
        console.print("can match")
    if parts := _affecting_constraints(inspection):
        console.print(f"constraints that affect it: {', '.join(parts)}")
    for term in inspection.check.dead:
        console.print(f"can never match{alternative_text(term.term, len(query.terms))}: {term.text}")
    if inspection.check.asks_for_violation:
        console.print(
            "it describes a violation of the constraints; to find violations, register it with constraints: off"
        )
    if not inspection.check.is_satisfiable:
        return
    for redundant in inspection.redundant:
        console.print(f"redundant: {redundant.text}")
    if not inspection.conditions:
        console.print("no event terminates it early")
    expected = {state.state: state.probability for state in inspection.states}
    for (state, bound), group in groupby(
        inspection.conditions, key=lambda failing: (failing.state, _names(failing.bound))
    ):
        share = f"expected in {expected[state]:.0%} of the transactions"
        console.print(
            f"\nwith {bound} bound{alternative_text(state.term, len(query.terms))}, "
            f"a partial match is terminated early ({share}) by"
        )
        for condition in group:
            unless = ", unless the match takes it" if condition.is_takable else ""
            why = condition.explanation
            console.print(f"  {why.event_name}{why.circumstances}{unless}: {why.because}")


def _affecting_constraints(inspection: PatternInspection) -> list[str]:
    ends = {str(part) for condition in inspection.conditions for part in condition.explanation.constraints}
    return sorted(ends | {str(part) for term in inspection.check.dead for part in term.constraints})


def _forbidden(pattern: Pattern, query: Query) -> list[str]:
    return sorted(all_types_of(pattern) - query.types)


def _names(atoms: Sequence[Atom]) -> str:
    return ", ".join(describe_atom(atom) for atom in atoms) or "nothing"
