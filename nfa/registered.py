"""A pattern as the matcher runs it."""

from __future__ import annotations

from dataclasses import dataclass, field

from nfa.automata.guard_view import GuardView, guard_view
from nfa.automata.pattern_automaton import PatternAutomaton, build_automaton
from nfa.automata.query import Query
from nfa.automata.query_building import build_query
from nfa.language.parsing import parse_pattern
from nfa.syntax import Path, Pattern
from streams import USUAL_BUDGET, WorkBudget


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningPattern:
    """A pattern that the matcher runs.

    Attributes:
        name: Also in the text.
        version: Of the pattern.
        text: What was registered.
        is_guarded: Whether guards may end its partial matches.
        budget: How much work it may cost.
        query: What a guard reasons about.
        automaton: What the engines run.
        view: How its states look to a guard.
    """

    name: str
    version: int
    text: str
    is_guarded: bool
    query: Query
    automaton: PatternAutomaton = field(repr=False)
    view: GuardView = field(repr=False)
    budget: WorkBudget = USUAL_BUDGET

    @property
    def keys(self) -> tuple[Path, ...]:
        """Paths of ``WHERE [..]``."""
        return self.query.pattern.keys


def registered(
    text: str,
    version: int,
    *,
    is_guarded: bool = True,
    budget: WorkBudget = USUAL_BUDGET,
    parsed: Pattern | None = None,
) -> RunningPattern:
    """A pattern from its text, which is read here where the caller has not read it.

    Raises:
        PatternRefused: The text is refused.
    """
    pattern = parse_pattern(text) if parsed is None else parsed
    query, automaton = build_query(pattern), build_automaton(pattern)
    return RunningPattern(
        name=pattern.name,
        version=version,
        text=text,
        is_guarded=is_guarded,
        query=query,
        automaton=automaton,
        view=guard_view(automaton, query),
        budget=budget,
    )
