"""Operators of a project that are registered as JSON documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from service.client import ForestallClient, part
from service.projects.documents import Document
from service.projects.operators import Operators, aimed_state
from service.projects.resources import Files, Form, Found, Wanted
from shards import DocumentKind
from streams import Definition

_USUAL = {"severity": "medium", "state": "active"}


class DocumentOperators(Operators):
    """Operators of a document kind that are not retired."""

    def __init__(self, kind: DocumentKind) -> None:
        self.kind = kind
        self.title = kind.name
        self.place = f"/{kind.plural}"

    def wanted(self, document: Document, folder: Path) -> Iterator[Wanted]:
        """The operator; its streams are checked where they are known."""
        if document.kind == self.kind.name:
            own = {name: value for name, value in document.body.items() if name not in _USUAL}
            shared = {name: document.body.get(name, usual) for name, usual in _USUAL.items()}
            form = {"body": own, **shared}
            feeds = self.fed(document.name, form)
            yield Wanted(kind=self, name=document.name, form=form, document=document, feeds=feeds)

    def fed(self, name: str, form: Form) -> str:
        """The derived stream of the kind's feed."""
        feed = self.kind.feed(Definition(kind=self.title, name=name, version=0, inputs=(), body=form["body"]))
        return "" if feed is None else feed.stream

    def registration(self, wanted: Wanted) -> dict[str, Any]:
        """The document that registers an operator."""
        return {"name": wanted.name, **wanted.form["body"], "severity": wanted.form["severity"]}

    def find(self, client: ForestallClient, name: str) -> Found | None:
        """An operator; a suspended one counts as active."""
        at = f"{self.place}/{part(name)}"
        read = client.read(at)
        if read is None:
            return None
        answer, tag = read
        stream = {"stream": answer["stream"]} if "stream" in self.kind.schema["properties"] else {}
        form = {"body": stream | answer["body"], "severity": answer["severity"], "state": aimed_state(answer)}
        return Found(form=form, tag=tag, at=at, answer=answer)

    def effect(self, found: Form, wanted: Form) -> str:
        """Whether a running operator keeps its state, in words."""
        if found["now"] != "active" or wanted["state"] != "active" or found["body"] == wanted["body"]:
            return ""
        keeps = self.kind.keeps(found["body"], wanted["body"])
        return "it keeps the rows that it holds" if keeps else "it begins from nothing"

    def export(self, client: ForestallClient, name: str, found: Found, keep: Files) -> Form:
        """The operator's own members, and the shared ones that differ from the defaults."""
        rest = {member: value for member, value in found.form.items() if _USUAL.get(member, value) != value}
        return {**found.form["body"], **rest}
