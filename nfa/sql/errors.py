"""Errors of SQL queries."""

from __future__ import annotations

from nfa.errors import PatternError


class RowPatternFailed(PatternError, code="row-pattern-failed"):
    """A valid query has no result over this table, because the search takes too long or there is no row to skip to."""
