"""Operators in a project: documents of all kinds, with one life cycle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from service.client import Client, condition, part
from service.projects.documents import Document
from service.projects.resources import Files, Form, Found, ResourceKind, Wanted, tag_of
from shards import DocumentKind
from streams import Definition, ForestallError, indefinite

_STEPS = {("active", "paused"): "pause", ("paused", "active"): "resume", ("draft", "active"): "activate"}
_SHARED: Mapping[str, Any] = MappingProxyType({"severity": "medium", "state": "active"})
_TEXT, _TEXT_FILE = "text", "text_file"


class Operators(ResourceKind):
    """The operators of one kind that are not retired."""

    def __init__(self, kind: DocumentKind) -> None:
        self.kind = kind
        self.title = kind.name
        self.path = f"/{kind.plural}"
        self._own = [name for name in kind.schema["properties"] if name not in kind.passing]
        self._usual = {**kind.usual, **_SHARED}

    def read(self, document: Document, folder: Path) -> Wanted:
        """Read an operator; its streams are checked if they are known."""
        body = dict(self.kind.answered({**self._usual, **document.body}))
        if _TEXT in self._own:
            body[_TEXT] = str(document.own_or_beside(_TEXT, indefinite(self.title), folder)).strip()
            body.pop(_TEXT_FILE, None)
        try:
            self.kind.check({"name": document.name, **body})
        except ForestallError as error:
            raise document.refuse(error.message, _TEXT_FILE if _TEXT_FILE in document.body else _TEXT) from error
        extra = {name: body.pop(name) for name in self.kind.passing if name in body}
        feeds = self.fed(document.name, body)
        return Wanted(kind=self, name=document.name, form=body, document=document, extra=extra, feeds=feeds)

    def fed(self, name: str, form: Form) -> str:
        """The derived stream that an operator feeds; empty: none."""
        feed = self.kind.feed(Definition(kind=self.title, name=name, version=0, inputs=(), body=form))
        return "" if feed is None else feed.stream

    def names(self, client: Client) -> list[str]:
        """The names of all operators that are not retired."""
        return [item["name"] for item in client.pages(self.path) if item["state"] != "retired"]

    def form_of(self, client: Client, at: str, answer: Any) -> Form:
        """The form of an operator; a suspended one counts as active."""
        members = {"stream": answer["stream"], **answer.get("body", answer)}
        form = {name: value for name, value in members.items() if name in self._own}
        if _TEXT in form:
            form[_TEXT] = form[_TEXT].strip()
        state = "active" if answer["state"] == "suspended" else str(answer["state"])
        return {**form, "severity": answer["severity"], "state": state}

    def put(self, client: Client, wanted: Wanted, found: Found | None) -> None:
        """Register a different operator, then move it to its state."""
        form, at = wanted.form, f"{self.path}/{part(wanted.name)}"
        aim, state = form["state"], None if found is None else found.form["state"]
        tag = tag_of(found)
        if found is None or {**form, "state": state} != found.form or state == "retired":
            begun = "draft" if aim == "draft" and state in (None, "draft") else "active"
            client.request(
                "POST", self.path, body={**self._registration(wanted), "state": begun}, headers=condition(tag)
            )
            read = client.find(at)
            tag, state = (read[1], read[0]["state"]) if read is not None else (None, begun)
        step = _STEPS.get((str(state), aim))
        if step is not None:
            client.request("POST", f"{at}/{step}", headers=condition(tag))

    def _registration(self, wanted: Wanted) -> Form:
        """The request body that registers an operator; an operator written as text contains its name."""
        name = {} if _TEXT in self._own else {"name": wanted.name}
        return {**name, **wanted.form, **wanted.extra}

    def cannot_change(self, found: Form, wanted: Form) -> str:
        """The reason if the stream would change, as an operator's stream is fixed."""
        is_same = found.get("stream") == wanted.get("stream")
        return "" if is_same else f"the stream of {indefinite(self.title)} cannot be changed; rename it"

    def effect(self, found: Form, wanted: Form) -> str:
        """Whether a running operator keeps what it holds, in words."""
        before, after = own_members(found), own_members(wanted)
        if not self.kind.holds or found["now"] != "active" or wanted["state"] != "active" or before == after:
            return ""
        is_kept = self.kind.keeps(before, after)
        return f"it keeps the {self.kind.holds} that it holds" if is_kept else "it begins from nothing"

    def export(self, client: Client, name: str, found: Found, keep: Files) -> Form:
        """Document members that differ from the defaults."""
        return {member: value for member, value in found.form.items() if self._usual.get(member, ...) != value}


def own_members(form: Form) -> Form:
    """Members of an operator that its kind defines."""
    return {name: value for name, value in form.items() if name not in (*_SHARED, "now")}
