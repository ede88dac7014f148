"""The resources that each project has created, stored so that no project deletes the resources of another project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from service.errors import TooManyProjects, UnknownProject
from service.stores.conditions import ANY, Condition
from service.stores.connection import PREFIX
from service.stores.record_books import Change, Records
from service.stores.records import encode

_MOST_PROJECTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRecord:
    """An applied project.

    Attributes:
        resources: Pairs of a kind and a name.
        applied_us: Time of the project's last change, microseconds UTC.
    """

    name: str
    resources: Sequence[tuple[str, str]]
    applied_us: int

    def tagged(self) -> dict[str, Any]:
        return {"name": self.name, "resources": self.resources}


class ProjectStore(Records[ProjectRecord]):
    """The applied projects, by name."""

    key = PREFIX + "projects"
    one = "the project"
    form = ProjectRecord

    def unknown(self, name: str, reason: str = "", **details: Any) -> UnknownProject:
        return UnknownProject(f"no project {name[:200]!r} was applied", name=name)

    def put(self, record: ProjectRecord, condition: Condition = ANY) -> None:
        """Store a project, or remove it if it has no resources.

        If the store is full, raise ``TooManyProjects``. If the stored project does not meet ``condition``, raise
        ``PreconditionFailed``.
        """

        def changed(body: bytes | None) -> Change:
            condition.check_record(None if body is None else self.read(body, record.name))
            if not record.resources:
                return Change(record=b"")
            if body is None and self._client.hlen(self.key) >= _MOST_PROJECTS:
                raise TooManyProjects(
                    f"there are {_MOST_PROJECTS} projects, the maximum; apply one of them as empty first"
                )
            return Change(record=encode(**asdict(record)))

        self._book.apply(self.key, record.name, changed, f"{self.one} {record.name!r}")
