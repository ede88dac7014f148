"""A pattern that the matcher runs: its text, compiled form, version and work limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from nfa.automata.guard_view import GuardView, guard_view
from nfa.automata.pattern_automaton import PatternAutomaton, build_automaton, is_shareable
from nfa.automata.query import Query
from nfa.automata.query_building import build_query
from nfa.conditions.table_rows import RowsRead
from nfa.language.strangers import columns_read
from nfa.pattern_texts import parse_pattern
from nfa.syntax import Path, Pattern
from streams import USUAL_BUDGET, WorkBudget


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True, eq=False)
class _Compiled:
    """A compiled pattern text. All matchers share it, because a pattern with many repetitions needs much memory."""

    pattern: Pattern
    query: Query
    automaton: PatternAutomaton
    view: GuardView
    rows: RowsRead | None
    is_shareable: bool


_COMPILED: WeakValueDictionary[str, _Compiled] = WeakValueDictionary()
"""The compiled patterns by text, as long as a matcher of this process runs them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningPattern:
    """A pattern that a matcher runs, under the name in its text.

    If ``is_guarded``, guards may end its partial matches early.
    """

    name: str
    version: int
    text: str
    is_guarded: bool
    compiled: _Compiled = field(repr=False)
    budget: WorkBudget = USUAL_BUDGET

    @property
    def query(self) -> Query:
        return self.compiled.query

    @property
    def automaton(self) -> PatternAutomaton:
        return self.compiled.automaton

    @property
    def view(self) -> GuardView:
        return self.compiled.view

    @property
    def is_shareable(self) -> bool:
        """Whether the shared-node engine can run the pattern, if events are ordered as in the log."""
        return self.compiled.is_shareable

    @property
    def rows(self) -> RowsRead | None:
        """The table and columns that a pattern with FOR EACH ROW reads, or None for other patterns."""
        return self.compiled.rows

    @property
    def keys(self) -> tuple[Path, ...]:
        """The paths in the pattern's ``WHERE [..]``."""
        return self.query.pattern.keys


def registered(
    text: str,
    version: int,
    *,
    is_guarded: bool = True,
    budget: WorkBudget = USUAL_BUDGET,
    parsed: Pattern | None = None,
) -> RunningPattern:
    """Return the pattern that a matcher runs for a text. Callers that have parsed the text can pass ``parsed``."""
    compiled = _COMPILED.get(text)
    if compiled is None or parsed not in (None, compiled.pattern):
        compiled = _compiled(parse_pattern(text) if parsed is None else parsed)
        _COMPILED[text] = compiled  # house: allow module-state: a cache, filled from the text alone
    return RunningPattern(
        name=compiled.pattern.name,
        version=version,
        text=text,
        is_guarded=is_guarded,
        compiled=compiled,
        budget=budget,
    )


def _compiled(pattern: Pattern) -> _Compiled:
    query, automaton = build_query(pattern), build_automaton(pattern)
    rows = None
    if pattern.rows is not None:
        rows = RowsRead(pattern.rows.table, pattern.rows.alias, tuple(sorted(columns_read(pattern))))
    return _Compiled(
        pattern=pattern,
        query=query,
        automaton=automaton,
        view=guard_view(automaton, query),
        rows=rows,
        is_shareable=is_shareable(automaton),
    )
