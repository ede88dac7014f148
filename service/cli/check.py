"""``forestall check``: what a pattern means under constraints, before anything runs."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from constraints import ConstraintSet, FailingCondition, check_query, check_set, failing_conditions
from nfa import Pattern, Query, build_query, describe_atom, describe_node, parse_patterns
from service.cli.inputs import read_constraint_file, read_pattern_files
from service.errors import FileUnreadable


def check(
    pattern: Annotated[str, typer.Argument(help="Pattern file, or the pattern itself.")],
    constraints: Annotated[Path | None, typer.Option(help="Constraints, JSON or YAML.")] = None,
) -> None:
    """Read a pattern, say whether it can match, and what ends it early. Exit status 1: it can never match."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    constraint_set = read_constraint_file(constraints).constraint_set if constraints else ConstraintSet.of(())
    for warning in check_set(constraint_set):
        console.print(f"warning: {warning.text}")
    is_satisfiable = True
    for parsed in _patterns(pattern):
        is_satisfiable &= _report(console, parsed, build_query(parsed), constraint_set)
    raise typer.Exit(0 if is_satisfiable else 1)


def _patterns(argument: str) -> list[Pattern]:
    if argument.lstrip().upper().startswith("PATTERN "):
        return list(parse_patterns(argument))
    if not Path(argument).is_file():
        raise FileUnreadable(
            f"{argument!r} is neither a file nor a pattern; a pattern begins with PATTERN name EVENT", file=argument
        )
    return read_pattern_files([Path(argument)])


def _report(console: Console, pattern: Pattern, query: Query, constraint_set: ConstraintSet) -> bool:
    console.print(f"{pattern.name}: {describe_node(pattern.event)}")
    console.print(f"listens to {', '.join(sorted(query.types))}")
    verdict = check_query(query, constraint_set)
    for term in verdict.dead:
        console.print(f"can never match{_which(term.term, len(query.terms))}: {term.text}")
    if not verdict.is_satisfiable:
        return False
    conditions = failing_conditions(query, constraint_set)
    if not conditions:
        console.print("nothing ends it early")
    for bound, group in groupby(conditions, key=_bound):
        console.print(f"\nwith {bound} bound, a partial match is ended by")
        for condition in group:
            unless = ", where it is not taken" if condition.is_takable else ""
            console.print(f"  {condition.event_type}{unless}: {condition.explanation.because}")
    return True


def _which(term: int, terms: int) -> str:
    return f", alternative {term + 1} of {terms}" if terms > 1 else ""


def _bound(condition: FailingCondition) -> str:
    return ", ".join(describe_atom(atom) for atom in condition.bound) or "nothing"
