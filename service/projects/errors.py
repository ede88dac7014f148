"""Errors about a project, or about applying one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

from service.errors import ServiceError


class ProjectRefused(ServiceError, code="project-refused", fault="caller"):
    """Documents of a project are wrong; the message names every problem with its place."""

    @property
    def problems(self) -> list[str]:
        """The problems, each with its place."""
        return cast("list[str]", self.details["problems"])

    @classmethod
    def of(cls, problems: Sequence[str]) -> Self:
        """The refusal for some problems."""
        return cls("\n".join(problems), problems=list(problems))


class ApplyStopped(ServiceError, code="apply-stopped", fault="caller"):
    """A service was changed by another client, or refused a change, while a project was applied to it."""


class JoinSuspended(ServiceError, code="join-suspended", fault="caller"):
    """A join with ``late: fail`` met an event of a key that was finished; the message names both, and the input."""
