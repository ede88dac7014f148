"""Open traces as plain JSON: the answers of patterns to questions about traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from nfa import CasePattern, CaseQuery, CaseState, Furthest, MonitorState, OpenCase, OpenCases, RunningPattern
from shards.kinds.patterns.rules import Rules
from streams import ControlRecordError, StreamDeclaration

MOST_CASES = 200
"""The largest number of traces in one answer."""

_MOST_BOUND = 50  # bound events shown of a partial match
_MOST_WAITED_FOR = 10  # steps shown that would extend a partial match
_MOST_REASONED = 20  # monitor states with their possible next types, and early terminations with their reasons

Json: TypeAlias = dict[str, Any]


def case_query(question: Mapping[str, Any]) -> CaseQuery:
    """Read the query of a question about traces; raises ``ControlRecordError`` if a member is invalid."""
    wrong = [name for name, is_right in _FORM.items() if name in question and not is_right(question[name])]
    wrong += sorted(question.keys() - _FORM.keys())
    if question.get("about") != "traces" or wrong:
        raise ControlRecordError(
            f"ask record: {', '.join(wrong) or 'about'} has no valid value for a question about traces"
        )
    return CaseQuery(**{name: value for name, value in question.items() if name != "about" and value is not None})


def _is_text(value: object) -> bool:
    return value is None or (isinstance(value, str) and bool(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_FORM: Mapping[str, Callable[[Any], bool]] = {
    "about": lambda value: value == "traces",
    "pattern": _is_text,
    "key": _is_text,
    "last_type": _is_text,
    "waits_for": _is_text,
    "state": lambda value: value in get_args(CaseState),
    "older_than_us": _is_number,
    "limit": lambda value: _is_number(value) and 1 <= value <= MOST_CASES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAnswer:
    """Describes open traces, and the progress of patterns in each."""

    declaration: StreamDeclaration
    patterns: Mapping[str, RunningPattern]
    rules: Mapping[int, Rules]

    def of(self, open_cases: OpenCases, newest_us: int | None) -> Json:
        """Describe open traces, and the progress of patterns in each, as plain JSON.

        ``newest_us`` is the event time reached, or None before the first event.
        """
        by_state: dict[tuple[int, MonitorState], Json] = {}
        reasons: dict[tuple[str, int, MonitorState], str | None] = {}
        return {
            "time_us": newest_us,
            "open": open_cases.total,
            "matching": open_cases.matching,
            "unnamed": open_cases.unnamed,
            "by_last_type": dict(open_cases.by_last_type),
            "traces": [self._case(case, by_state, reasons) for case in open_cases.cases],
        }

    def _case(
        self,
        case: OpenCase,
        by_state: dict[tuple[int, MonitorState], Json],
        reasons: dict[tuple[str, int, MonitorState], str | None],
    ) -> Json:
        if case.guard is not None and case.guard not in by_state and len(by_state) < _MOST_REASONED:
            version, state = case.guard
            may, must_not, more = self.rules[version].following(state, self.declaration.event_types)
            is_complete = self.rules[version].is_complete(state, may)
            by_state[case.guard] = {
                "constraints": "complete" if is_complete else "kept",
                "following": {"possible": may, "excluded": must_not, "more": more},
            }
        return {
            "key": case.key,
            "first_us": case.first_us,
            "newest_us": case.newest_us,
            "last_type": case.last_type,
            "events": case.events,
            "version": None if case.guard is None else case.guard[0],
            **self._following(case, by_state),
            "patterns": [self._pattern(case_pattern, case, reasons) for case_pattern in case.patterns],
            "more_patterns": case.more_patterns,
        }

    def _following(self, case: OpenCase, by_state: Mapping[tuple[int, MonitorState], Json]) -> Json:
        if case.guard is not None:
            return by_state.get(case.guard, {"constraints": "kept", "following": None})
        declared = sorted(self.declaration.event_types) if case.keeping == "none" else []
        return {"constraints": case.keeping, "following": {"possible": declared, "excluded": []}}

    def _pattern(
        self, case_pattern: CasePattern, case: OpenCase, reasons: dict[tuple[str, int, MonitorState], str | None]
    ) -> Json:
        reason = None
        if case_pattern.state == "ended" and case.guard is not None:
            name = case_pattern.name, *case.guard
            if name not in reasons and len(reasons) < _MOST_REASONED:
                pattern = self.patterns[case_pattern.name]
                reasons[name] = self.rules[case.guard[0]].why_over(pattern.query, pattern.view, case.guard[1])
            reason = reasons.get(name)
        return {
            "name": case_pattern.name,
            "version": case_pattern.version,
            "state": case_pattern.state,
            "partial_matches": case_pattern.partial_matches,
            "furthest": None if case_pattern.furthest is None else _furthest(case_pattern.furthest),
            "reason": reason,
        }


def _furthest(furthest: Furthest) -> Json:
    newest = furthest.bound[-_MOST_BOUND:]
    return {
        "since_us": min(bound_event.time_us for bound_event in furthest.bound),
        "bound": [
            {"alias": bound_event.alias, "event": bound_event.event_id, "time_us": bound_event.time_us}
            for bound_event in newest
        ],
        "bound_events": len(furthest.bound),
        "waits_for": list(furthest.waits_for[:_MOST_WAITED_FOR]),
        "more_waits_for": len(furthest.waits_for[_MOST_WAITED_FOR:]),
        "expires_us": furthest.expires_us,
    }
