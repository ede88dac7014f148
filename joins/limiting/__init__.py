"""How many results a join may lead to, and the account that suspends it."""

from joins.limiting.limits import ResultAccount, ResultLimits

__all__ = ["ResultAccount", "ResultLimits"]
