"""Plans the changes that would make a service equal to a project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Literal, TypeAlias

import yaml

from service.client import Client, ResourceChanged, condition, part
from service.errors import ApplyStopped, ProjectRefused
from service.projects.documents import Document
from service.projects.operators import Operators
from service.projects.resources import Form, ResourceKind, StoredResource, Wanted
from service.projects.streams import ConstraintSets, EventTypes, Following, Streams, Workflows
from service.projects.tables import Calendars, ReferenceTables
from service.projects.webhooks import Sinks, Webhooks
from shards import DOCUMENT_KINDS
from streams import DeclarationError, ForestallError
from streams.tables import PREFIX, require_table

Identity: TypeAlias = tuple[str, str]
"""The kind and the name of a resource."""

_ATTEMPTS = 10
_TABLES = ((ReferenceTables(), ""), (Calendars(), PREFIX))  # with the prefix of their names in lookups

Action: TypeAlias = Literal["new", "changed", "gone", "kept"]

KINDS: tuple[ResourceKind, ...] = (
    ReferenceTables(),
    Calendars(),
    Streams(),
    EventTypes(),
    Workflows(),
    Following(),
    ConstraintSets(),
    *(Operators(kind) for kind in DOCUMENT_KINDS),
    Webhooks(),
    Sinks(),
)
"""All kinds of resources, in the order of their dependencies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """The resources that projects have. ``project`` is the project for which a plan is made.

    ``own`` are the resources that this project created or named when it was last applied. Its plan may delete those
    that no other project has. ``others`` names, for each resource, the other projects that have the resource.
    """

    project: str
    own: frozenset[Identity]
    others: dict[Identity, list[str]]

    def why_kept(self, resource: Identity) -> str:
        """Return why a resource must not be deleted although the project does not name it.

        The text is empty if it may be deleted.
        """
        if resource not in self.own:
            owners = self.others.get(resource)
            return f"it belongs to the project {', '.join(owners)}" if owners else "it was made outside of this project"
        if resource in self.others:
            return f"the project {', '.join(self.others[resource])} has it, too"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A difference between service and project.

    ``wanted`` is None if the project does not name the resource. Then ``action`` is ``gone`` if the plan deletes the
    resource. Otherwise, ``action`` is ``kept``, and ``why`` has the reason.
    """

    action: Action
    kind: ResourceKind
    name: str
    wanted: Wanted | None
    found: StoredResource | None
    why: str = ""

    @property
    def identity(self) -> Identity:
        return self.kind.title, self.name

    @property
    def title(self) -> str:
        """The kind and name of the resource, such as ``pattern lost``, for messages."""
        return f"{self.kind.title} {self.name}"

    @property
    def effect(self) -> str:
        """Whether an operator keeps its state, in words. The text is empty if the change does not affect the state."""
        if self.found is None or self.wanted is None:
            return ""
        return self.kind.effect({**self.found.form, "now": self.found.answer.get("state")}, self.wanted.form)

    def difference(self) -> list[str]:
        """Return the changed lines of the resource's form, with a few unchanged lines around them.

        A removed line has a minus, an added line a plus.
        """
        return difference(
            None if self.found is None else self.found.form, None if self.wanted is None else self.wanted.form
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All differences between service and project, in the order of changes. ``same`` counts the equal documents."""

    changes: Sequence[Change]
    same: int
    named: frozenset[Identity]
    ownership: Ownership

    @property
    def work(self) -> list[Change]:
        return [change for change in self.changes if change.action != "kept"]

    @property
    def deleted_streams(self) -> list[str]:
        """The names of streams that are deleted together with their events."""
        return [change.name for change in self.work if change.action == "gone" and isinstance(change.kind, Streams)]


def plan_project(client: Client, documents: Sequence[Document], folder: Path, *, is_pruned: bool) -> Plan:
    """Compare a project with a service, without changing anything.

    Raises ``ProjectRefused`` if a document is invalid, or if a change is impossible. With ``is_pruned``, the plan
    deletes resources that the project created but no longer names.
    """
    wanted = wanted_of(documents, folder)
    changes: list[Change] = []
    problems: list[str] = []
    for resource in wanted:
        stored = resource.kind.find(client, resource.name)
        if resource.kind.is_as(None if stored is None else stored.form, resource):
            continue
        change = Change(
            action="new" if stored is None else "changed",
            kind=resource.kind,
            name=resource.name,
            wanted=resource,
            found=stored,
        )
        if stored is not None and (why := resource.kind.cannot_change(stored, resource.form)):
            lines = "\n".join(f"    {line}" for line in change.difference())
            problems.append(f"{resource.document.place()}: {change.title}: {why}\n{lines}")
        changes.append(change)
    problems += _of_tables(client, wanted, changes)
    if problems:
        raise ProjectRefused.of(problems)
    changed_documents = {id(change.wanted.document) for change in changes if change.wanted is not None}
    named = frozenset((resource.kind.title, resource.name) for resource in wanted)
    ownership = read_ownership(client, project_name(documents, folder))
    gone = list(_gone(client, named, ownership, is_pruned=is_pruned))
    return Plan(
        changes=[*changes, *_without_used(client, gone, {change.identity for change in changes})],
        same=sum(document.kind not in ("test", "project") for document in documents) - len(changed_documents),
        named=named,
        ownership=ownership,
    )


def _of_tables(client: Client, wanted: Sequence[Wanted], changes: Sequence[Change]) -> Iterator[str]:
    """Yield a problem for each changed operator whose document is invalid, or that reads an unknown table or calendar.

    Project and service may both have the tables and calendars.
    """
    known = {prefix + each.name for kind, prefix in _TABLES for each in wanted if each.kind.title == kind.title}
    is_complete = False
    for change in changes:
        if not isinstance(change.kind, Operators) or change.wanted is None:
            continue
        try:
            for table in change.kind.tables(change.name, change.wanted.form):
                if table not in known and not is_complete:
                    known |= {prefix + name for kind, prefix in _TABLES for name in kind.names(client)}
                    is_complete = True
                require_table(dict.fromkeys(known), table)
        except ForestallError as error:
            yield f"{change.wanted.document.place()}: {change.title}: {error.message}"


def wanted_of(documents: Sequence[Document], folder: Path) -> list[Wanted]:
    """Return the resources of documents in the order of creation. Errors contain file and line."""
    problems: list[str] = []
    resources: list[Wanted] = []
    for kind in KINDS:
        for document in documents:
            try:
                resources += kind.wanted(document, folder)
            except ProjectRefused as error:
                problems += error.problems
            except DeclarationError as error:
                problems.append(f"{document.place()}: {error.message}")
    if problems:
        raise ProjectRefused.of(problems)
    return with_implied(resources)


def with_implied(wanted: Sequence[Wanted]) -> list[Wanted]:
    """Add the resources that the wanted resources need but no document describes.

    Returns the wanted and the added resources in the order of creation.
    """
    implied = [resource for kind in KINDS for resource in kind.implied(wanted)]
    return sorted([*wanted, *implied], key=lambda resource: KINDS.index(resource.kind))


def difference(before: Form | None, after: Form | None) -> list[str]:
    """Compare two forms line by line. A removed line has a minus, an added line a plus.

    A few unchanged lines around the changes are included.
    """
    lines = unified_diff(_lines(before), _lines(after), lineterm="", n=2)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def _gone(client: Client, named: frozenset[Identity], ownership: Ownership, *, is_pruned: bool) -> Iterator[Change]:
    for kind in reversed(KINDS):
        for name in kind.names(client):
            stored = None if (kind.title, name) in named else kind.find(client, name)
            if stored is not None:
                why = ownership.why_kept((kind.title, name)) or ("" if is_pruned else "--prune deletes it")
                why = kind.cannot_go or why
                yield Change(action="kept" if why else "gone", kind=kind, name=name, wanted=None, found=stored, why=why)


def _without_used(client: Client, gone: Sequence[Change], changed: set[Identity]) -> Iterator[Change]:
    """Yield the planned deletions. A deletion becomes ``kept`` if a resource outside the plan uses the resource."""
    leaving = {change.identity for change in gone if change.action == "gone"}
    for change in gone:
        uses: list[str] = []
        if change.action == "gone" and change.found is not None:
            used = change.kind.uses(client, change.name, change.found)
            uses = [f"{kind} {name}" for kind, name in used if (kind, name) not in leaving | changed]
        yield replace(change, action="kept", why=f"in use by {', '.join(uses)}") if uses else change


def project_name(documents: Sequence[Document], folder: Path) -> str:
    """Return the name in the project's document of the kind ``project``, otherwise the folder's name."""
    return next(
        (document.name for document in documents if document.kind == "project"), folder.resolve().name or "project"
    )


def read_ownership(client: Client, project: str) -> Ownership:
    """Read the service's records about projects, for the plan of ``project``."""
    own: frozenset[Identity] = frozenset()
    others: dict[Identity, list[str]] = {}
    for item in client.projects.list():
        resources = [(record["kind"], record["name"]) for record in item["resources"]]
        if item["name"] == project:
            own = frozenset(resources)
        else:
            for resource in resources:
                others.setdefault(resource, []).append(item["name"])
    return Ownership(project=project, own=own, others=others)


def note_ownership(
    client: Client, project: str, *, added: Set[Identity] = frozenset(), removed: Set[Identity] = frozenset()
) -> None:
    """Change the service's list of a project's resources, which later plans of all projects read.

    If another client changes the list in the meantime, the list is read again. Raises ``ApplyStopped`` if that happens
    ten times in a row.
    """
    path = f"/projects/{part(project)}"
    for _ in range(_ATTEMPTS):
        stored, etag = client.find(path) or (None, None)
        current = {(resource["kind"], resource["name"]) for resource in stored["resources"]} if stored else set()
        resources = (current | added) - removed
        if resources == current:
            return
        body = {"resources": [{"kind": kind, "name": name} for kind, name in sorted(resources)]}
        with suppress(ResourceChanged):
            client.request("PUT", path, body=body, headers=condition(etag))
            return
    raise ApplyStopped(f"other clients are applying the project {project}; apply it again when they are done")


class _Dumper(yaml.SafeDumper):
    """A dumper that writes multi-line texts as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def as_yaml(value: Form) -> str:
    """Return members as YAML that is easy to read."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def _lines(form: Form | None) -> list[str]:
    return [] if form is None else as_yaml(dict(sorted(form.items()))).splitlines()
