"""The resources that belong to each project, as recorded by the service."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from service.client import Client, part
from service.projects.documents import Document

Identity: TypeAlias = tuple[str, str]
"""Kind and name of a resource."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """The resources that a project made or named when last applied, and resources of others with their projects."""

    project: str
    own: frozenset[Identity]
    others: dict[Identity, list[str]]

    def why_kept(self, resource: Identity) -> str:
        """The reason why an unnamed resource is not deleted; empty if the project may delete it."""
        if resource not in self.own:
            owners = self.others.get(resource)
            return f"it belongs to the project {', '.join(owners)}" if owners else "it was made outside of this project"
        if resource in self.others:
            return f"the project {', '.join(self.others[resource])} has it, too"
        return ""


def project_name(documents: Sequence[Document], folder: Path) -> str:
    """The name of a project: the name in its document of the kind project, otherwise the name of its folder."""
    return next((one.name for one in documents if one.kind == "project"), folder.resolve().name or "project")


def read_ownership(client: Client, project: str) -> Ownership:
    """The service's records about projects, from the point of view of one project."""
    own: frozenset[Identity] = frozenset()
    others: dict[Identity, list[str]] = {}
    for item in client.projects.list():
        resources = [(one["kind"], one["name"]) for one in item["resources"]]
        if item["name"] == project:
            own = frozenset(resources)
        else:
            for resource in resources:
                others.setdefault(resource, []).append(item["name"])
    return Ownership(project=project, own=own, others=others)


def note_ownership(client: Client, project: str, resources: Iterable[Identity]) -> None:
    """Record the resources of a project in the service."""
    body = [{"kind": kind, "name": name} for kind, name in sorted(set(resources))]
    client.put(f"/projects/{part(project)}", {"resources": body})
