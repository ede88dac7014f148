"""Operators in a project. The documents of all kinds of operators have one life cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from service.client import Client, condition, part
from service.projects.documents import Document
from service.projects.resources import Ask, Files, Form, ResourceKind, StoredResource, Wanted, tag_of, warnings_at
from shards import DocumentKind
from streams import Definition, ForestallError, indefinite

_STEPS = {("active", "paused"): "pause", ("paused", "active"): "resume", ("draft", "active"): "activate"}
_SHARED: Mapping[str, Any] = MappingProxyType({"severity": "medium", "state": "active"})
_TEXT, _TEXT_FILE = "text", "text_file"


class Operators(ResourceKind):
    """The operators of one kind, except retired ones."""

    def __init__(self, kind: DocumentKind) -> None:
        self.kind = kind
        self.title = kind.name
        self.path = f"/{kind.plural}"
        self._members = [name for name in kind.schema["properties"] if name not in kind.passing]
        self._defaults = {**kind.usual, **_SHARED}

    def read(self, document: Document, folder: Path) -> Wanted:
        """Read an operator. Checks everything in its document that does not depend on streams."""
        body = dict(self.kind.answered({**self._defaults, **document.body}))
        if _TEXT in self._members:
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
        """Return the derived stream that an operator feeds, or an empty text if it feeds none."""
        feed = self.kind.feed(Definition(kind=self.title, name=name, version=0, inputs=(), body=form))
        return "" if feed is None else feed.stream

    def tables(self, name: str, form: Form) -> list[str]:
        """Return the reference tables and calendars that an operator reads, by their names in lookups, sorted."""
        definition = Definition(kind=self.title, name=name, version=0, inputs=(), body=own_members(form))
        return sorted({lookup.table for lookup in self.kind.lookups(definition)})

    def names(self, client: Client) -> list[str]:
        return [item["name"] for item in client.pages(self.path) if item["state"] != "retired"]

    def form_of(self, client: Client, at: str, answer: Any) -> Form:
        """Return the form of a stored operator: the members that are compared with a document.

        The service suspends an operator by itself, so a suspended operator counts as active.
        """
        members = {"stream": answer["stream"], **answer.get("body", answer)}
        form = {name: value for name, value in members.items() if name in self._members}
        if _TEXT in form:
            form[_TEXT] = form[_TEXT].strip()
        state = "active" if answer["state"] == "suspended" else str(answer["state"])
        return {**form, "severity": answer["severity"], "state": state}

    def put(self, client: Client, wanted: Wanted, stored: StoredResource | None) -> None:
        """Register an operator and change it to the wanted state.

        If only the state differs and an action leads to the wanted state, only this action is requested. Otherwise, the
        operator is registered, and an action follows if its state is still not the wanted one. For example, a paused
        operator stays paused if only its severity changes, and a draft becomes paused. The service refuses to change a
        retired operator, and to make a draft of an operator that has already run.
        """
        form, at = wanted.form, f"{self.path}/{part(wanted.name)}"
        aim, state = form["state"], None if stored is None else stored.form["state"]
        tag = tag_of(stored)
        is_reachable = state == aim or (state, aim) in _STEPS
        if stored is None or {**form, "state": state} != stored.form or not is_reachable:
            client.request("POST", self.path, body=self._registration(wanted), headers=condition(tag))
            tagged = client.find(at)
            tag, state = (tagged[1], tagged[0]["state"]) if tagged is not None else (None, aim)
        step = _STEPS.get((str(state), aim))
        if step is not None:
            client.request("POST", f"{at}/{step}", headers=condition(tag))

    def warnings(self, ask: Ask, wanted: Wanted) -> Sequence[str]:
        return warnings_at(ask, f"{self.path}/{part(wanted.name)}")

    def _registration(self, wanted: Wanted) -> Form:
        name = {} if _TEXT in self._members else {"name": wanted.name}
        return {**name, **wanted.form, **wanted.extra}

    def cannot_change(self, stored: StoredResource, wanted: Form) -> str:
        """Return why an operator cannot be changed to its wanted form, or an empty text if it can.

        A retired operator cannot be changed, and a suspended operator cannot be paused without another change. No
        operator can change its stream, or become a draft again after it has run.
        """
        before = stored.form
        if before["state"] == "retired":
            return "it is retired; delete it first, or take another name"
        if before.get("stream") != wanted.get("stream"):
            return f"the stream of {indefinite(self.title)} cannot be changed; rename it"
        is_suspended = stored.answer["state"] == "suspended"
        if is_suspended and wanted["state"] == "paused" and own_members(before) == own_members(wanted):
            return "it is suspended, so it cannot be paused; resume it first, or change it"
        is_again = wanted["state"] == "draft" and before["state"] in ("active", "paused")
        return "it cannot be a draft again; give the draft another name" if is_again else ""

    def effect(self, stored: Form, wanted: Form) -> str:
        """Return a sentence that says whether a running operator keeps its state when it is changed.

        The text is empty if the change does not affect the state.
        """
        before, after = own_members(stored), own_members(wanted)
        if not self.kind.holds or stored["now"] != "active" or wanted["state"] != "active" or before == after:
            return ""
        is_kept = self.kind.keeps(before, after)
        return f"it keeps the {self.kind.holds} that it holds" if is_kept else "it begins from nothing"

    def export(self, client: Client, name: str, stored: StoredResource, keep: Files) -> Form:
        return {member: value for member, value in stored.form.items() if self._defaults.get(member, ...) != value}


def own_members(form: Form) -> Form:
    """Return the members of an operator's form that depend on its kind."""
    return {name: value for name, value in form.items() if name not in (*_SHARED, "now")}
