"""Writes the resources of a service as a project."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from service.client import Client
from service.errors import FileUnreadable
from service.projects.operators import Operators
from service.projects.planning import KINDS, as_yaml
from service.projects.resources import Form, ResourceKind
from service.projects.streams import EventTypes, Following


def export_project(client: Client, folder: Path, notice: Callable[[str], None] | None = None) -> list[Path]:
    """Export a service into a new or empty folder of documents.

    Applying the documents to the service changes nothing, with one exception: a table whose rows were changed one at a
    time gets a new version with the same rows.

    ``notice`` is called with a sentence about each resource whose name another service would refuse.
    """
    try:
        if folder.exists() and any(folder.iterdir()):
            raise FileUnreadable(f"{folder} is not empty; export into a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        return _Writer(client, folder, notice).written()
    except OSError as error:
        raise FileUnreadable(f"{folder} cannot be written: {error.strerror}") from error


class _Writer:
    """Writes the documents of a service. Each kind has a folder, and each document has a file."""

    def __init__(self, client: Client, folder: Path, notice: Callable[[str], None] | None) -> None:
        self._client = client
        self._notice = notice
        self._folder = folder
        self._files: list[Path] = []
        self._taken: set[Path] = set()

    def written(self) -> list[Path]:
        for kind in KINDS:
            if not isinstance(kind, Following):  # schemas are members of the stream documents
                for name in kind.names(self._client):
                    self._write(kind, name)
        return self._files

    def _write(self, kind: ResourceKind, name: str) -> None:
        stored = kind.find(self._client, name)
        if stored is None:
            return
        place = self._folder / f"{kind.title.replace(' ', '-')}s"
        body = kind.export(self._client, name, stored, partial(self._keep, place))
        if kind.title == "stream":
            body = {**body, **self._followed(name)}
        document_name = name.partition("/")[2] if isinstance(kind, EventTypes) else name
        head = {"kind": kind.document_kind, "name": document_name}
        file = self._keep(place, f"{name}.yaml", as_yaml({**head, **body}).encode())
        if self._notice and document_name in (".", "..") and isinstance(kind, (Operators, EventTypes)):
            self._notice(
                f"{kind.title} {name} is in {file}; a service refuses this name today, so rename it before you apply "
                "the project to another service"
            )

    def _followed(self, stream: str) -> Form:
        stored = Following().find(self._client, stream)
        if stored is None:
            return {}
        name, mode = stored.form["workflow"], stored.form["mode"]
        return {"workflow": name if mode == "auto" else {"name": name, "mode": mode}}

    def _keep(self, place: Path, file: str, content: bytes) -> str:
        """Write a file and return its name, which is unique and valid in every file system."""
        place.mkdir(parents=True, exist_ok=True)
        stem, _, suffix = "".join(char if char.isalnum() or char in "._-" else "_" for char in file).rpartition(".")
        plain = f"{stem.lstrip('.') or '_'}.{suffix}"
        path = first = place / plain
        number = 2
        while path.with_name(path.name.casefold()) in self._taken:
            path, number = first.with_stem(f"{first.stem}-{number}"), number + 1
        self._taken.add(path.with_name(path.name.casefold()))
        path.write_bytes(content)
        self._files.append(path)
        return path.name
