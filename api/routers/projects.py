"""Projects, with the resources that each project has made. With these lists, no project deletes another's resources."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from api.locations import require_segment
from api.requests.filters import WantedPart
from api.requests.preconditions import Preconditions, give_tag
from api.schemas.projects import ProjectList, ProjectModel, ProjectResources
from api.services import Served

router = APIRouter(prefix="/projects", tags=["projects"])

ProjectName = Annotated[str, Path(min_length=1, max_length=200, description="The project.")]


@router.get("", summary="List the projects")
def list_projects(services: Served, part: WantedPart) -> ProjectList:
    """List all projects that were applied, by name, each with its resources."""
    return ProjectList(**part.of(services.stores.projects.all(), "name"))


@router.get("/{name}", summary="Look up a project")
def get_project(name: ProjectName, services: Served, response: Response) -> ProjectModel:
    """Look up the resources of a project."""
    record = services.stores.projects.get(name)
    give_tag(response, record)
    return ProjectModel.from_domain(record)


@router.put("/{name}", summary="Set the resources of a project")
def put_project(
    name: ProjectName, wanted: ProjectResources, services: Served, response: Response, preconditions: Preconditions
) -> ProjectModel:
    """Record the resources that a project has made. An empty list removes the project.

    `forestall apply` adds to the list that it has read (`If-Match`). With `--prune`, it deletes only resources in this
    list that no other project lists.
    """
    require_segment(name, "name")
    record = wanted.to_domain(name, services.clock.now_us())
    services.stores.projects.put(record, preconditions)
    if record.resources:
        give_tag(response, record)
    return ProjectModel.from_domain(record)
