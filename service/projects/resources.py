"""The kinds of resources in a project: how each is read from documents, compared with a service, and changed.

A resource has a *form*: plain values that are equal when nothing has to be changed. The form of a document and that of
a service's resource are made by the same kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from service.client import Client, condition
from service.projects.documents import Document

Form: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A resource as a project wants it.

    Attributes:
        is_implied: Whether the resource has no document, but another resource needs it.
    """

    kind: ResourceKind
    name: str
    form: Form
    document: Document
    extra: Mapping[str, Any] = field(default_factory=dict)
    feeds: str = ""
    is_implied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A resource as a service has it: its form, ``ETag`` and path in the API, and the service's whole answer."""

    form: Form
    tag: str
    at: str
    answer: Mapping[str, Any] = field(default_factory=dict)


Files: TypeAlias = Callable[[str, bytes], str]
"""Writes a file of an export beside its documents, and returns its name there."""


class ResourceKind(ABC):
    """A kind of resources."""

    title: str
    """The kind's name for people, in the singular."""

    cannot_go: ClassVar[str] = ""
    """Why an existing resource cannot be deleted, in words; empty: it can."""

    @abstractmethod
    def wanted(self, document: Document, folder: Path) -> Iterator[Wanted]:
        """The resources of this kind that a document describes; raises if the document is not valid."""

    def implied(self, wanted: Sequence[Wanted]) -> Iterator[Wanted]:
        """The resources of this kind that other resources of a project need and no document describes."""
        return iter(())

    def is_as(self, found: Form, wanted: Wanted) -> bool:
        """Whether the found resource equals the wanted one."""
        return found == wanted.form

    def cannot_change(self, found: Form, wanted: Form) -> str:
        """The reason why an existing resource cannot be changed as wanted, in words; empty if it can."""
        return ""

    def effect(self, found: Form, wanted: Form) -> str:
        """The effect of a change on the state of an existing operator, in words; empty: none."""
        return ""

    @abstractmethod
    def names(self, client: Client) -> list[str]:
        """The names of a service's resources of this kind, in the order of its lists."""

    @abstractmethod
    def find(self, client: Client, name: str) -> Found | None:
        """A resource of a service by name; None if it does not exist."""

    @abstractmethod
    def put(self, client: Client, wanted: Wanted, found: Found | None) -> None:
        """Create or change the resource in the service, if it is still as found."""

    def remove(self, client: Client, found: Found) -> None:
        """Delete a found resource."""
        client.request("DELETE", found.at, headers=condition(found.tag))

    def export(self, client: Client, name: str, found: Found, keep: Files) -> Form:
        """The members of a document that describes a found resource."""
        return found.form


def tag_of(found: Found | None) -> str | None:
    """The ``ETag`` that a change needs; None if no resource was found."""
    return None if found is None else found.tag
