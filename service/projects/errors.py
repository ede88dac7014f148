"""Errors about a project, or about applying one."""

from __future__ import annotations

from service.errors import ServiceError
from service.runs.errors import ProjectRefused

__all__ = ["ApplyStopped", "JoinSuspended", "ProjectRefused"]


class ApplyStopped(ServiceError, code="apply-stopped", fault="caller"):
    """A service was changed by another client, or refused a change, while a project was applied to it."""


class JoinSuspended(ServiceError, code="join-suspended", fault="caller"):
    """A join with ``late: fail`` met an event of a key that was finished; the message names both, and the input."""
