"""What a pattern can wait for where it is matched, and what is to be said of it there."""

from __future__ import annotations

from dataclasses import dataclass

from nfa.language.stream_checks import Notice, check_stream
from nfa.syntax import Pattern
from nfa.work_bounds import warnings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEnds:
    """How the traces end in which a pattern is matched.

    Attributes:
        has_trace_end: Whether they do, by an end event or an idle timeout.
        has_closing: Whether a guard says of some event that nothing follows it; that decides a NOT, but no GREEDY.
        is_log_ordered: Whether events of one time are ordered.
    """

    has_trace_end: bool
    has_closing: bool = False
    is_log_ordered: bool = True

    def check(self, pattern: Pattern) -> None:
        """Refuse a pattern that would wait for ever.

        Raises:
            PatternRefused: ``needs-end``.
        """
        check_stream(pattern, has_trace_end=self.has_trace_end, has_closing=self.has_closing)

    def warnings_of(self, pattern: Pattern) -> tuple[Notice, ...]:
        """What is accepted but probably not meant, in the order of the text.

        Raises:
            PatternRefused: ``too-large``: it has too many states to be run.
        """
        return warnings_of(
            pattern,
            has_trace_end=self.has_trace_end,
            has_closing=self.has_closing,
            is_log_ordered=self.is_log_ordered,
        )
