"""``forestall check``: what patterns and constraints mean, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from constraints import (
    Choice,
    ConstraintSet,
    ContradictoryConstraints,
    IdleParts,
    ParsedConstraints,
    SetWarning,
    check_set,
    choose,
    idle_parts,
)
from nfa import Atom, Pattern, Query, all_types_of, build_query, describe_atom, describe_node, parse_patterns
from service.cli.inputs import Times, read_constraint_file, read_pattern_files
from service.cli.model_choice import Exact, MapFile, Model, ModelChoice, Process, Tables, model_choice
from service.cli.past import PastViolations
from service.cli.past_log import EndEvents, read_log
from service.errors import FileUnreadable
from service.registering.inspection import (
    PatternInspection,
    choice_document,
    idle_document,
    inspect_pattern,
    set_document,
)
from service.registering.strangers import unfollowed_types


def check(
    pattern: Annotated[str, typer.Argument(help="Pattern file, or the pattern itself.")],
    constraints: Annotated[Path | None, typer.Option(help="Constraints, JSON or YAML.")] = None,
    workflow: Model = None,
    map_file: MapFile = None,
    process: Process = None,
    exact: Exact = False,
    tables: Tables = False,
    is_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON document.")] = False,
    log: Annotated[
        Path | None,
        typer.Option(help="Past events, .jsonl, .csv or .xes: how many traces break each constraint."),
    ] = None,
    key: Annotated[str | None, typer.Option(help="Of the log: path of the correlation key.")] = None,
    times: Annotated[Times, typer.Option(help="Of the log: 'file' takes the order of the file.")] = Times.EVENT,
    lifecycle: Annotated[bool, typer.Option(help="Of an XES log: types are name+transition.")] = False,
    end: EndEvents = None,
) -> None:
    """Read patterns, say whether they can match, and what ends them early. Exit status 1: one can never match."""
    parsed = read_constraint_file(constraints) if constraints else ParsedConstraints(ConstraintSet.of(()))
    patterns = _patterns(pattern)
    if (choice := model_choice(workflow, map_file, process, exact=exact, tables=tables)) is not None:
        parsed = _followed(parsed, choice)
    past = PastViolations.told(parsed)
    if log is not None:
        ends = parsed.constraint_set.trace_ends.union(end or ())
        traces = read_log(log, key=key, times=times, lifecycle=lifecycle, end_events=ends)
        past = PastViolations.counted(parsed, traces)
    try:
        warnings = check_set(parsed.constraint_set)
    except ContradictoryConstraints as clash:
        if not is_json:
            raise
        typer.echo(orjson.dumps(_clashing(parsed, clash, past)).decode())
        raise typer.Exit(2) from clash
    found = replace(_Found.of(patterns, parsed, warnings), past=past)
    if is_json:
        typer.echo(orjson.dumps(found.to_document()).decode())
    else:
        _print(found)
    raise typer.Exit(0 if found.is_satisfiable else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """All that is known of some patterns under a document."""

    parsed: ParsedConstraints
    warnings: Sequence[SetWarning]
    patterns: Sequence[tuple[Pattern, Query, PatternInspection]]
    choice: Choice
    idle: IdleParts
    past: PastViolations | None = None

    @classmethod
    def of(cls, patterns: Sequence[Pattern], parsed: ParsedConstraints, warnings: Sequence[SetWarning]) -> _Found:
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
        return all(found.check.is_satisfiable for _, _, found in self.patterns)

    def to_document(self) -> dict[str, Any]:
        return {
            **set_document(self.parsed.constraint_set),
            "notices": list(self.parsed.notices),
            "warnings": [warning.text for warning in self.warnings],
            "clash": None,
            "patterns": [
                {**_pattern_document(*one), "warnings": unfollowed_types(one[0], self.parsed.constraint_set, ())}
                for one in self.patterns
            ],
            "monitor": choice_document(self.choice),
            "unused": idle_document(self.idle),
            "past": None if self.past is None else self.past.to_document(),
        }


def _followed(parsed: ParsedConstraints, choice: ModelChoice) -> ParsedConstraints:
    """A document with what a model says. What reads models takes long to import, and most calls have none."""
    from service.cli.processes import follow_model  # noqa: PLC0415

    return replace(parsed, constraint_set=follow_model(parsed.constraint_set, choice)[0])


def _clashing(
    parsed: ParsedConstraints, clash: ContradictoryConstraints, past: PastViolations | None
) -> dict[str, Any]:
    """The document of a set that no trace can keep; of patterns under it there is nothing to say."""
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


def _pattern_document(pattern: Pattern, query: Query, found: PatternInspection) -> dict[str, Any]:
    return {
        "pattern": pattern.name,
        "event": describe_node(pattern.event),
        "listens_to": sorted(query.types),
        "forbids": _forbidden(pattern, query),
        "is_satisfiable": found.check.is_satisfiable,
        "asks_for_violation": found.check.asks_for_violation,
        "matters": _mattering(found),
        **found.to_document(),
    }


def _patterns(argument: str) -> list[Pattern]:
    if argument.lstrip().upper().startswith("PATTERN "):
        return list(parse_patterns(argument))
    if not Path(argument).is_file():
        raise FileUnreadable(
            f"{argument!r} is neither a file nor a pattern; a pattern begins with PATTERN name EVENT", file=argument
        )
    return read_pattern_files([Path(argument)])


def _print(found: _Found) -> None:
    console = Console(highlight=False, soft_wrap=True, markup=False)
    for warning in found.warnings:
        console.print(f"warning: {warning.text}")
    for pattern, query, inspection in found.patterns:
        console.print(f"{pattern.name}: {describe_node(pattern.event)}")
        console.print(f"listens to {', '.join(sorted(query.types))}")
        if forbidden := _forbidden(pattern, query):
            console.print(f"forbids {', '.join(forbidden)}")
        for mistake in unfollowed_types(pattern, found.parsed.constraint_set, ()):
            console.print(f"warning: {mistake}")
        _print_pattern(console, query, inspection)
    if found.parsed.constraint_set.parts:
        console.print(f"\nmonitor: {found.choice.text}")
        if found.idle.parts:
            scope = "" if found.idle.is_complete else f" (as far as {found.idle.visited} monitor states show)"
            console.print(f"no pattern profits from{scope}:")
            for part in found.idle.parts:
                console.print(f"  {part}")
    if found.past is not None:
        console.print("\n" + "\n".join(found.past.lines))


def _print_pattern(console: Console, query: Query, found: PatternInspection) -> None:
    if found.check.is_satisfiable:
        console.print("it can match")
    if parts := _mattering(found):
        console.print(f"constraints that matter to it: {', '.join(parts)}")
    for term in found.check.dead:
        console.print(f"can never match{_which(term.term, len(query.terms))}: {term.text}")
    if found.check.asks_for_violation:
        console.print("it looks for a violation of the constraints: to find it, register it with constraints: off")
    if not found.check.is_satisfiable:
        return
    for redundant in found.redundant:
        console.print(f"says nothing{_which(redundant.term, len(query.terms))}: {redundant.text}")
    if not found.conditions:
        console.print("nothing ends it early")
    expected = {state.state: state.probability for state in found.states}
    for (state, bound), group in groupby(found.conditions, key=lambda one: (one.state, _names(one.bound))):
        share = f"expected in {expected[state]:.0%} of the transactions"
        console.print(
            f"\nwith {bound} bound{_which(state.term, len(query.terms))}, a partial match is ended ({share}) by"
        )
        for condition in group:
            unless = ", where it is not taken" if condition.is_takable else ""
            why = condition.explanation
            console.print(f"  {why.event_name}{why.circumstances}{unless}: {why.because}")


def _mattering(found: PatternInspection) -> list[str]:
    """The constraints by which alternatives cannot match and partial matches end."""
    ends = {str(part) for condition in found.conditions for part in condition.explanation.constraints}
    return sorted(ends | {str(part) for term in found.check.dead for part in term.constraints})


def _forbidden(pattern: Pattern, query: Query) -> list[str]:
    """Event types of NOT and UNTIL that no step takes."""
    return sorted(all_types_of(pattern) - query.types)


def _which(term: int, terms: int) -> str:
    return f", alternative {term + 1} of {terms}" if terms > 1 else ""


def _names(atoms: Sequence[Atom]) -> str:
    return ", ".join(describe_atom(atom) for atom in atoms) or "nothing"
