"""What a project says of joins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from service.client import ForestallClient, part
from service.projects.documents import Document
from service.projects.resources import Files, Form, Found, ResourceKind, Wanted, tag_of

_USUAL = {"severity": "medium", "state": "active"}


class Joins(ResourceKind):
    """Joins that are not retired."""

    title: ClassVar[str] = "join"

    def wanted(self, document: Document, folder: Path) -> Iterator[Wanted]:
        """The join; whether its streams can be joined so is seen where they are known."""
        if document.kind == "join":
            own = {name: value for name, value in document.body.items() if name not in _USUAL}
            said = {name: document.body.get(name, usual) for name, usual in _USUAL.items()}
            yield Wanted(
                kind=self, name=document.name, form={"body": own, **said}, document=document, feeds=document.name
            )

    def names(self, client: ForestallClient) -> list[str]:
        """All that are not retired."""
        return [item["name"] for item in client.get("/joins")["items"] if item["state"] != "retired"]

    def find(self, client: ForestallClient, name: str) -> Found | None:
        """A join; one that is suspended is meant to be active."""
        at = f"/joins/{part(name)}"
        read = client.read(at)
        if read is None:
            return None
        answer, tag = read
        state = "active" if answer["state"] == "suspended" else answer["state"]
        form = {"body": answer["body"], "severity": answer["severity"], "state": state}
        return Found(form=form, tag=tag, at=at, answer=answer)

    def put(self, client: ForestallClient, wanted: Wanted, found: Found | None) -> None:
        """Register what is different, then bring it into its state."""
        form, at = wanted.form, f"/joins/{part(wanted.name)}"
        aim, state = form["state"], None if found is None else found.form["state"]
        tag = tag_of(found)
        if found is None or {**form, "state": state} != found.form or state == "retired":
            body: dict[str, Any] = {"name": wanted.name, **form["body"], "severity": form["severity"]}
            begun = "draft" if aim == "draft" and state in (None, "draft") else "active"
            client.change("POST", "/joins", tag, json={**body, "state": begun})
            read = client.read(at)
            tag, state = (read[1], read[0]["state"]) if read is not None else (None, begun)
        step = {("active", "paused"): "pause", ("paused", "active"): "resume", ("draft", "active"): "activate"}.get(
            (str(state), aim)
        )
        if step is not None:
            client.change("POST", f"{at}/{step}", tag)

    def export(self, client: ForestallClient, name: str, found: Found, keep: Files) -> Form:
        """Its own members, and what is not as usual."""
        rest = {member: value for member, value in found.form.items() if _USUAL.get(member, value) != value}
        return {**found.form["body"], **rest}
