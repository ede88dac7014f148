"""Projects on the wire."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field

from api.wire import PartModel, Time, WireModel
from service import ProjectRecord

_MOST = 20_000


class ProjectResource(WireModel):
    """A resource that a project has made, by `forestall apply`."""

    kind: Annotated[str, Field(min_length=1, max_length=100)]
    name: Annotated[str, Field(min_length=1, max_length=500, description="Of an event type: stream/type.")]


class ProjectResources(WireModel):
    """The resources that a project has made."""

    resources: list[ProjectResource] = Field(max_length=_MOST)

    def to_domain(self, name: str, now_us: int) -> ProjectRecord:
        resources = sorted({(resource.kind, resource.name) for resource in self.resources})
        return ProjectRecord(name=name, resources=resources, applied_us=now_us)


class ProjectModel(ProjectResources):
    """A project that was applied, with its resources."""

    name: str
    applied_at: Time = Field(description="Time of the last change of the list.")

    @classmethod
    def from_domain(cls, record: ProjectRecord) -> Self:
        resources = [ProjectResource(kind=kind, name=name) for kind, name in record.resources]
        return cls.copying(record, resources=resources)


class ProjectList(PartModel[ProjectModel]):
    """All projects."""
