"""The error about rules that cannot be run."""

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
