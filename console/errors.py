"""Errors of the console: what a call of the API may end with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ApiGone(Exception):
    """The API does not answer."""


class ApiRefused(Exception):
    """The API refused a call; ``problem`` is its problem document."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail") or problem.get("title") or f"status {status}"))
        self.status = status
        self.problem = problem
