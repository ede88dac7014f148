"""One constraint document as the matcher and the explanations need it; read once per process.

Reading some hundred constraints and asking them about pattern states takes longer than matching a small batch, and the
answers depend on the document only. So shards of one process, and states loaded again and again, share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from constraints import ConstraintSet, Explanation, Monitor, explain_ending, parse_constraints
from nfa import Ending, PatternState, Query, Seen

_DOCUMENTS_KEPT = 64
_EXPLANATIONS_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class _Question:
    """What an explanation depends on, besides the constraints."""

    query: Query
    state: PatternState
    before: Seen
    after: Seen
    event_type: str


class Rules:
    """A constraint set, its monitor, and the explanations given so far."""

    def __init__(self, constraint_set: ConstraintSet) -> None:
        self._constraint_set = constraint_set
        self._explanations: dict[_Question, Explanation] = {}
        self.monitor = Monitor(constraint_set)

    def explain(self, query: Query, ending: Ending) -> Explanation:
        """Why the matcher ended the partial matches of ``query``."""
        question = _Question(query, ending.state, ending.before, ending.after, ending.event_type)
        if question not in self._explanations:
            if len(self._explanations) >= _EXPLANATIONS_KEPT:
                self._explanations.clear()
            self._explanations[question] = explain_ending(
                self._constraint_set, query, ending.state, ending.before, ending.after, ending.event_type
            )
        return self._explanations[question]


def rules_of(document: Any) -> Rules:
    """The rules of an uploaded document; equal documents share one value.

    Raises:
        InvalidConstraints: The document is refused.
    """
    return _rules_of_text(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=_DOCUMENTS_KEPT)
def _rules_of_text(text: bytes) -> Rules:
    return Rules(parse_constraints(orjson.loads(text)).constraint_set)
