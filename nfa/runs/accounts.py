"""Accounts of patterns: the work that each pattern costs, and its debt for traces in which it was given up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.errors import StateFormatError
from streams import WorkBudget


@dataclass(slots=True)
class Account:
    """The account of a pattern's work, which decides whether the pattern is suspended.

    A pattern that takes too much work in a trace is given up there. Each such trace adds ``WorkBudget.forgiven_after``
    to the pattern's debt, and each event subtracts one. The pattern is suspended if its debt is too large, or if it
    takes too much work in all traces. It then receives no more events.

    Attributes:
        owed: The debt, in events, at the event with the sequence number ``since``.
        since: Sequence number of the event at which the pattern was last given up.
        work: The pattern's work beyond its allowance, in all traces, at the event ``worked_at``.
    """

    owed: int = 0
    since: int = 0
    is_suspended: bool = False
    work: int = 0
    worked_at: int = 0

    def charge(self, sequence: int, budget: WorkBudget) -> bool:
        """Charge the pattern for one more trace in which it is given up. Return whether the pattern is now suspended.

        The sequence number of the event must not be below that of the previous call.
        """
        self.owed = max(self.owed - (sequence - self.since), 0) + budget.forgiven_after
        self.since = sequence
        self.is_suspended = self.owed > budget.traces * budget.forgiven_after
        return self.is_suspended


def saved(accounts: Sequence[Account]) -> dict[str, NDArray[np.int64]]:
    """Return the accounts as arrays for a snapshot, in the order of the patterns.

    The second array, with the work of each pattern, is left out if no pattern has work.
    """
    rows = [(account.owed, account.since, account.is_suspended) for account in accounts]
    arrays = {"run_accounts": np.array(rows, np.int64).reshape(-1)}
    if any(account.work for account in accounts):
        arrays["run_worked"] = np.array([(account.work, account.worked_at) for account in accounts], np.int64).reshape(
            -1
        )
    return arrays


def restored(arrays: Mapping[str, NDArray[Any]], patterns: int, sequences: int) -> list[Account]:
    """Return the accounts of ``patterns`` patterns from the arrays that ``saved`` returned.

    States of earlier releases may lack an array. Its values then count as 0.
    """
    owed = _rows_of(arrays, "run_accounts", patterns, 3)
    worked = _rows_of(arrays, "run_worked", patterns, 2)
    rows = np.concatenate([owed, worked], axis=1)
    if np.any(rows < 0) or np.any(rows[:, [1, 4]] > sequences) or np.any(rows[:, 2] > 1):
        raise StateFormatError("saved state: run_accounts owes less than nothing, or since an event that never came")
    return [Account(owed, since, bool(suspended), *worked) for owed, since, suspended, *worked in rows.tolist()]


def _rows_of(arrays: Mapping[str, NDArray[Any]], name: str, patterns: int, size: int) -> NDArray[np.int64]:
    numbers = arrays.get(name)
    if numbers is None:
        return np.zeros((patterns, size), np.int64)
    if numbers.dtype != np.int64 or numbers.shape != (size * patterns,):
        raise StateFormatError(f"saved state: {name} is not of the patterns that run")
    return numbers.reshape(patterns, size)
