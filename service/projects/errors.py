"""Errors about a project, or about applying one."""

from __future__ import annotations

from service.errors import ServiceError
from service.runs.errors import ProjectRefused

__all__ = ["ApplyStopped", "ProjectRefused"]


class ApplyStopped(ServiceError, code="apply-stopped", fault="caller"):
    """A service was changed by another client, or refused a change, while a project was applied to it."""
