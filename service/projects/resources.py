"""What a project says of a service: the kinds of resources, how each is read from it, compared, and changed.

A resource has a *form*: plain values that are equal when nothing has to be changed. The form of a document and that of
what a service has are made by the same kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from service.client import ForestallClient
from service.projects.documents import Document

Form: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A resource as a project wants it.

    Attributes:
        kind: Its kind.
        name: Tells it from the others of its kind.
        form: What is compared.
        document: Where it is said.
        extra: What a change needs besides.
        feeds: The derived stream that it feeds; empty: none.
        is_implied: Whether no document is of it, and another resource needs it.
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
    """A resource as a service has it.

    Attributes:
        form: What is compared.
        tag: Its ``ETag``.
        at: Its place in the API.
        answer: All that the service says of it.
    """

    form: Form
    tag: str
    at: str
    answer: Mapping[str, Any] = field(default_factory=dict)


Files: TypeAlias = Callable[[str, bytes], str]
"""Keeps a file of an export beside its documents, and gives the name under which it stands there."""


class ResourceKind(ABC):
    """A kind of resources."""

    title: ClassVar[str]
    """What people call one of it."""

    cannot_go: ClassVar[str] = ""
    """Why one that is there cannot be deleted, in words; empty: it can."""

    @abstractmethod
    def wanted(self, document: Document, folder: Path) -> Iterator[Wanted]:
        """What a document asks for.

        Raises:
            ForestallError: It cannot be meant so.
        """

    def implied(self, wanted: Sequence[Wanted]) -> Iterator[Wanted]:
        """What the resources of a project need of this kind, and no document names."""
        return iter(())

    def is_as(self, found: Form, wanted: Wanted) -> bool:
        """Whether what was found is what is wanted."""
        return found == wanted.form

    def cannot_change(self, found: Form, wanted: Form) -> str:
        """Why one that is there cannot be changed so, in words; empty: it can."""
        return ""

    def effect(self, found: Form, wanted: Form) -> str:
        """What a change does to what one that is there holds, in words; empty: there is nothing to say."""
        return ""

    @abstractmethod
    def names(self, client: ForestallClient) -> list[str]:
        """What a service has of this kind, in the order in which it is listed."""

    @abstractmethod
    def find(self, client: ForestallClient, name: str) -> Found | None:
        """One resource of a service; None where it has none of that name."""

    @abstractmethod
    def put(self, client: ForestallClient, wanted: Wanted, found: Found | None) -> None:
        """Make the service have what is wanted, where it still has what was found."""

    def remove(self, client: ForestallClient, found: Found) -> None:
        """Delete what was found."""
        client.change("DELETE", found.at, found.tag)

    def export(self, client: ForestallClient, name: str, found: Found, keep: Files) -> Form:
        """The members of a document that asks for what was found."""
        return found.form


def tag_of(found: Found | None) -> str | None:
    """The ``ETag`` that a change needs; None where nothing was found."""
    return None if found is None else found.tag
