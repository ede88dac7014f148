"""Errors of queries."""

from __future__ import annotations

from nfa.errors import PatternError


class RowPatternFailed(PatternError, code="row-pattern-failed"):
    """A query is valid, but has no result over this table: the search takes too long, or has no row to skip to."""
