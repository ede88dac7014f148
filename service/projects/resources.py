"""Kinds of resources in a project: how each is read from documents, compared with a service, and changed.

Each kind converts a document to a *form*, and a resource of the service to a form. Forms are plain values, and two
forms are equal if nothing has to be changed.
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
    """A resource that a project wants. If ``is_implied``, another resource needs it and no document describes it."""

    kind: ResourceKind
    name: str
    form: Form
    document: Document
    extra: Mapping[str, Any] = field(default_factory=dict)
    feeds: str = ""
    is_implied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResource:
    """A resource of a service.

    ``form`` is compared with the form in the project. ``tag`` is the ``ETag``, ``at`` the path in the API, and
    ``answer`` the API's whole answer.
    """

    form: Form
    tag: str
    at: str
    answer: Mapping[str, Any] = field(default_factory=dict)


Files: TypeAlias = Callable[[str, bytes], str]
"""A function that writes a file beside the exported documents, and returns the file's name."""

Ask: TypeAlias = Callable[[str], Mapping[str, Any]]
"""A function that returns the service's answer at a path, or an empty answer if the resource does not exist."""


class ResourceKind(ABC):
    """Reads, compares, changes and exports the resources of one kind, such as streams."""

    title: str
    """The kind's name in messages, in the singular."""

    path: str
    """The path of the kind's list in the API. The path of a resource is this path and the resource's name."""

    cannot_go: ClassVar[str] = ""
    """The reason why an existing resource cannot be deleted, in words, or empty if it can."""

    @property
    def document_kind(self) -> str:
        """The kind of the documents that describe these resources."""
        return self.title

    def wanted(self, document: Document, folder: Path) -> Iterator[Wanted]:
        """Yield the resources of this kind that a document describes. Raises an error if the document is invalid."""
        if document.kind == self.document_kind:
            yield self.read(document, folder)

    @abstractmethod
    def read(self, document: Document, folder: Path) -> Wanted:
        """Return the resource that a document of this kind describes. Raises an error if the document is invalid."""

    def implied(self, wanted: Sequence[Wanted]) -> Iterator[Wanted]:
        """Yield the resources of this kind that other wanted resources need but no document describes."""
        return iter(())

    def is_as(self, stored: Form | None, wanted: Wanted) -> bool:
        """Return whether the stored resource equals the wanted one. ``stored`` is None if it does not exist."""
        return stored == wanted.form

    def cannot_change(self, stored: StoredResource, wanted: Form) -> str:
        """Return why a stored resource cannot be changed as wanted, in words, or an empty text if it can."""
        return ""

    def effect(self, stored: Form, wanted: Form) -> str:
        """Return the effect of a change on an existing operator's state, in words, or an empty text if it has none."""
        return ""

    def names(self, client: Client) -> list[str]:
        """Return the names of all resources of this kind in a service, in the order of the API's list."""
        return [item["name"] for item in client.pages(self.path)]

    def at(self, client: Client, name: str) -> str | None:
        """Return the path of a resource in the API, or None if the resource is known not to exist."""
        return f"{self.path}/{part(name)}"

    def find(self, client: Client, name: str) -> StoredResource | None:
        """Return a resource of a service by name, or None if it does not exist."""
        at = self.at(client, name)
        tagged = None if at is None else client.find(at)
        if at is None or tagged is None:
            return None
        form = self.form_of(client, at, tagged[0])
        return None if form is None else StoredResource(form=form, tag=tagged[1], at=at, answer=tagged[0])

    @abstractmethod
    def form_of(self, client: Client, at: str, answer: Any) -> Form | None:
        """Return the form of a resource from the service's answer, or None if the resource counts as missing."""

    def put(self, client: Client, wanted: Wanted, stored: StoredResource | None) -> None:
        """Create the resource, or change the stored resource unless another caller has changed it since."""
        at = self.at(client, wanted.name)
        assert at is not None, "only receivers have no path before they exist"
        client.request("PUT", at, body=self.body_of(wanted), headers=condition(tag_of(stored)))

    def body_of(self, wanted: Wanted) -> Any:
        """Return the request body with which ``put`` writes the resource."""
        return wanted.form

    def warnings(self, ask: Ask, wanted: Wanted) -> Sequence[str]:
        """Return the service's warnings about a resource that exists, such as about misspelt names.

        Most kinds have none.
        """
        return ()

    def remove(self, client: Client, stored: StoredResource) -> None:
        """Delete a stored resource unless another caller has changed it since."""
        client.request("DELETE", stored.at, headers=condition(stored.tag))

    def uses(self, client: Client, name: str, stored: StoredResource) -> list[tuple[str, str]]:
        """Return the kind and name of each resource that prevents the deletion of a stored resource."""
        return [(user["kind"], user["name"]) for user in stored.answer.get("users", ())]

    def export(self, client: Client, name: str, stored: StoredResource, keep: Files) -> Form:
        """Return the members of a document that describes a stored resource.

        ``keep`` writes a file beside the document, for content that the document only names.
        """
        return stored.form


def warnings_at(ask: Ask, path: str) -> Sequence[str]:
    """Return the warnings in the service's answer at a path."""
    warnings: Sequence[str] = ask(path).get("warnings", ())
    return warnings


def tag_of(stored: StoredResource | None) -> str | None:
    """Return the ``ETag`` of a stored resource, which makes a change conditional. Return None if it does not exist."""
    return None if stored is None else stored.tag
