"""What is wrong with a project, or with applying one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self, cast

from service.errors import ServiceError
from streams.errors import Fault


class ProjectRefused(ServiceError):
    """Documents of a project are wrong; the message names every problem with its place."""

    code: ClassVar[str] = "project-refused"
    fault: ClassVar[Fault] = "caller"

    @property
    def problems(self) -> list[str]:
        """The problems, each with its place."""
        return cast("list[str]", self.details["problems"])

    @classmethod
    def of(cls, problems: Sequence[str]) -> Self:
        """The refusal for some problems."""
        return cls("\n".join(problems), problems=list(problems))


class ApplyStopped(ServiceError):
    """A service was changed by somebody else, or refused a change, while a project was applied to it."""

    code: ClassVar[str] = "apply-stopped"
    fault: ClassVar[Fault] = "caller"
