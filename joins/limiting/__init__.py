"""Limits of the number of results of a join, and the account that suspends it."""

from joins.limiting.limits import ResultAccount, ResultLimits
