"""The resources that each project has created, so that no project deletes another's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import cast

from service.errors import TooManyProjects, UnknownProject
from service.stores.connection import PREFIX, Client
from service.stores.records import decode, encode

PROJECTS_KEY = PREFIX + "projects"

_MOST_PROJECTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRecord:
    """An applied project: kinds and names of its resources, and its last change in microseconds UTC."""

    name: str
    resources: Sequence[tuple[str, str]]
    applied_us: int


class ProjectStore:
    """The projects of a service, by name."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def put(self, record: ProjectRecord) -> None:
        """Write a project; one without resources is removed. A full store raises ``TooManyProjects``."""
        if not record.resources:
            self._client.hdel(PROJECTS_KEY, record.name)
            return
        if not self._client.hexists(PROJECTS_KEY, record.name) and self._client.hlen(PROJECTS_KEY) >= _MOST_PROJECTS:
            raise TooManyProjects(f"there are {_MOST_PROJECTS} projects, the maximum; apply one of them as empty first")
        self._client.hset(PROJECTS_KEY, record.name, encode(**asdict(record)))

    def get(self, name: str) -> ProjectRecord:
        """The record of a project; raises ``UnknownProject``."""
        body = cast("bytes | None", self._client.hget(PROJECTS_KEY, name))
        if body is None:
            raise UnknownProject(f"no project {name[:200]!r} was applied", name=name)
        return _read(name, body)

    def all(self) -> list[ProjectRecord]:
        """All projects, by name."""
        found = cast("dict[bytes, bytes]", self._client.hgetall(PROJECTS_KEY))
        return [_read(name.decode(), body) for name, body in sorted(found.items())]


def _read(name: str, body: bytes) -> ProjectRecord:
    fields = decode(body, f"the project {name!r}")
    return ProjectRecord(**{**fields, "resources": [(kind, one) for kind, one in fields["resources"]]})
