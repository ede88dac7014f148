"""Joins in a project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from service.client import ForestallClient, part
from service.projects.documents import Document
from service.projects.operators import Operators, aimed_state
from service.projects.resources import Files, Form, Found, Wanted
from shards.kinds.joins import JoinKind

_USUAL = {"severity": "medium", "state": "active"}


class Joins(Operators):
    """Joins that are not retired."""

    title: ClassVar[str] = "join"
    place: ClassVar[str] = "/joins"

    def wanted(self, document: Document, folder: Path) -> Iterator[Wanted]:
        """The join; whether its streams can be joined is checked where they are known."""
        if document.kind == "join":
            own = {name: value for name, value in document.body.items() if name not in _USUAL}
            said = {name: document.body.get(name, usual) for name, usual in _USUAL.items()}
            yield Wanted(
                kind=self, name=document.name, form={"body": own, **said}, document=document, feeds=document.name
            )

    def registration(self, wanted: Wanted) -> dict[str, Any]:
        """The document that registers a join."""
        return {"name": wanted.name, **wanted.form["body"], "severity": wanted.form["severity"]}

    def find(self, client: ForestallClient, name: str) -> Found | None:
        """A join; a suspended one counts as active."""
        at = f"/joins/{part(name)}"
        read = client.read(at)
        if read is None:
            return None
        answer, tag = read
        form = {"body": answer["body"], "severity": answer["severity"], "state": aimed_state(answer)}
        return Found(form=form, tag=tag, at=at, answer=answer)

    def effect(self, found: Form, wanted: Form) -> str:
        """Whether a join that runs keeps its rows, in words."""
        if found["now"] != "active" or wanted["state"] != "active" or found["body"] == wanted["body"]:
            return ""
        keeps = JoinKind().keeps(found["body"], wanted["body"])
        return "it keeps the rows that it holds" if keeps else "it begins from nothing"

    def export(self, client: ForestallClient, name: str, found: Found, keep: Files) -> Form:
        """The join's own members, and those that differ from the defaults."""
        rest = {member: value for member, value in found.form.items() if _USUAL.get(member, value) != value}
        return {**found.form["body"], **rest}
