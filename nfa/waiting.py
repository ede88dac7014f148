"""The ends of traces for a pattern, and the checks and warnings that depend on them."""

from __future__ import annotations

from dataclasses import dataclass

from nfa.language.stream_checks import Notice, check_stream
from nfa.syntax import Pattern
from nfa.work_bounds import warnings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEnds:
    """The possible ends of the traces in which a pattern is matched.

    ``has_closing`` is whether a guard knows an event that nothing follows; this decides a NOT, but not GREEDY.
    """

    has_trace_end: bool
    has_closing: bool = False
    is_log_ordered: bool = True

    def check(self, pattern: Pattern) -> None:
        """Refuse a pattern that would wait for ever."""
        check_stream(pattern, has_trace_end=self.has_trace_end, has_closing=self.has_closing)

    def warnings_of(self, pattern: Pattern) -> tuple[Notice, ...]:
        """Warnings about parts that are accepted but probably mistakes, in the order of the text."""
        return warnings_of(
            pattern,
            has_trace_end=self.has_trace_end,
            has_closing=self.has_closing,
            is_log_ordered=self.is_log_ordered,
        )
