"""Kinds of resources in a project: how each is read from documents, compared with a service, and changed.

Each kind converts a document, and a resource of the service, to the same *form*: plain values that are equal if nothing
has to be changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from service.client import Client, condition, part
from service.projects.documents import Document

Form: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A resource that a project wants; ``is_implied``: another resource needs it, and no document describes it."""

    kind: ResourceKind
    name: str
    form: Form
    document: Document
    extra: Mapping[str, Any] = field(default_factory=dict)
    feeds: str = ""
    is_implied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResource:
    """A resource of a service: its form, its ``ETag``, its path ``at`` in the API, and the whole answer about it."""

    form: Form
    tag: str
    at: str
    answer: Mapping[str, Any] = field(default_factory=dict)


Files: TypeAlias = Callable[[str, bytes], str]
"""Writes a file beside the exported documents, and returns the file's name."""


class ResourceKind(ABC):
    """Reads, compares, changes and exports the resources of one kind, such as streams."""

    title: str
    """The kind's name for people, in the singular."""

    path: str
    """The path of the kind's list in the API; a resource has its name below this path."""

    cannot_go: ClassVar[str] = ""
    """Why an existing resource cannot be deleted, in words; empty if it can."""

    @property
    def document_kind(self) -> str:
        """The kind of the documents that describe these resources."""
        return self.title

    def wanted(self, document: Document, folder: Path) -> Iterator[Wanted]:
        """The resources of this kind that a document describes; raises if the document is invalid."""
        if document.kind == self.document_kind:
            yield self.read(document, folder)

    @abstractmethod
    def read(self, document: Document, folder: Path) -> Wanted:
        """The resource that a document of this kind describes; raises if the document is invalid."""

    def implied(self, wanted: Sequence[Wanted]) -> Iterator[Wanted]:
        """The resources of this kind that other wanted resources need and no document describes."""
        return iter(())

    def is_as(self, stored: Form | None, wanted: Wanted) -> bool:
        """Whether the stored resource, None if it does not exist, equals the wanted one."""
        return stored == wanted.form

    def cannot_change(self, stored: StoredResource, wanted: Form) -> str:
        """Why a stored resource cannot be changed as wanted, in words; empty if possible."""
        return ""

    def effect(self, stored: Form, wanted: Form) -> str:
        """The effect of a change on an existing operator's state, in words; empty if it has none."""
        return ""

    def names(self, client: Client) -> list[str]:
        """Names of all resources of this kind in a service, in the order of the API's list."""
        return [item["name"] for item in client.pages(self.path)]

    def at(self, client: Client, name: str) -> str | None:
        """The path of a resource in the API; None if the resource is known not to exist."""
        return f"{self.path}/{part(name)}"

    def find(self, client: Client, name: str) -> StoredResource | None:
        """A resource of a service by name; None if it does not exist."""
        at = self.at(client, name)
        tagged = None if at is None else client.find(at)
        if at is None or tagged is None:
            return None
        form = self.form_of(client, at, tagged[0])
        return None if form is None else StoredResource(form=form, tag=tagged[1], at=at, answer=tagged[0])

    @abstractmethod
    def form_of(self, client: Client, at: str, answer: Any) -> Form | None:
        """The form of a resource, from the service's answer; None if the resource counts as not existing."""

    def put(self, client: Client, wanted: Wanted, stored: StoredResource | None) -> None:
        """Create the resource, or change the stored resource unless another caller has changed it since."""
        at = self.at(client, wanted.name)
        assert at is not None, "only receivers have no path before they exist"
        client.request("PUT", at, body=self.body_of(wanted), headers=condition(tag_of(stored)))

    def body_of(self, wanted: Wanted) -> Any:
        """The request body with which ``put`` writes the resource."""
        return wanted.form

    def remove(self, client: Client, stored: StoredResource) -> None:
        """Delete a stored resource unless another caller has changed it since."""
        client.request("DELETE", stored.at, headers=condition(stored.tag))

    def uses(self, client: Client, name: str, stored: StoredResource) -> list[tuple[str, str]]:
        """The resources, as kind and name, that prevent a stored resource from being deleted."""
        return [(user["kind"], user["name"]) for user in stored.answer.get("users", ())]

    def export(self, client: Client, name: str, stored: StoredResource, keep: Files) -> Form:
        """The members of a document that describes a stored resource; ``keep`` writes files beside the document."""
        return stored.form


def tag_of(stored: StoredResource | None) -> str | None:
    """The ``ETag`` on which a change is conditional; None if the resource does not exist."""
    return None if stored is None else stored.tag
