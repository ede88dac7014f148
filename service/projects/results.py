"""Patterns and webhooks in a project."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nfa import parse_pattern
from service.client import ForestallClient, part
from service.projects.documents import Document
from service.projects.errors import ProjectRefused
from service.projects.operators import Operators, aimed_state
from service.projects.resources import Files, Form, Found, ResourceKind, Wanted
from service.stores import USUAL_KINDS
from streams import ForestallError

_PATTERN = {"constraints": "on", "severity": "medium", "state": "active"}
_WEBHOOK: Form = {
    "stream": None,
    "pattern": None,
    "min_severity": None,
    "kinds": list(USUAL_KINDS),
    "description": "",
    "template": None,
    "enabled": True,
}


class Patterns(Operators):
    """Patterns that are not retired."""

    title = "pattern"
    place = "/patterns"

    def wanted(self, document: Document, folder: Path) -> Iterator[Wanted]:
        """The pattern."""
        if document.kind != "pattern":
            return
        if ("text" in document.body) == ("text_file" in document.body):
            raise document.refuse("a pattern has either text or text_file")
        member = "text" if "text" in document.body else "text_file"
        try:
            text = document.body.get("text") or document.beside("text_file", folder).decode()
            parsed = parse_pattern(text)
        except UnicodeDecodeError:
            raise document.refuse(f"{document.body['text_file']} is not a text in UTF-8", "text_file") from None
        except ProjectRefused:
            raise
        except ForestallError as error:
            raise document.refuse(error.message, member) from error
        if parsed.name != document.name:
            raise document.refuse(
                f"the text calls the pattern {parsed.name!r}, the document {document.name!r}; give both one name",
                member,
            )
        said = {name: document.body.get(name, usual) for name, usual in _PATTERN.items()}
        form = {"stream": document.body["stream"], "text": text.strip(), **said}
        extra = {"start": document.body.get("start", "fresh")}
        feeds = self.fed(document.name, form)
        yield Wanted(kind=self, name=document.name, form=form, document=document, extra=extra, feeds=feeds)

    def fed(self, name: str, form: Form) -> str:
        """The derived stream of INTO."""
        into = parse_pattern(form["text"]).into
        return "" if into is None else into.stream

    def registration(self, wanted: Wanted) -> dict[str, Any]:
        """The text and the options of its registration."""
        return {name: value for name, value in wanted.form.items() if name != "state"} | dict(wanted.extra)

    def find(self, client: ForestallClient, name: str) -> Found | None:
        """A pattern; a suspended one counts as active."""
        at = f"/patterns/{part(name)}"
        read = client.read(at)
        if read is None:
            return None
        answer, tag = read
        form = {name: answer[name] for name in ("stream", "text", *_PATTERN)}
        form = {**form, "text": form["text"].strip(), "state": aimed_state(answer)}
        return Found(form=form, tag=tag, at=at, answer=answer)

    def cannot_change(self, found: Form, wanted: Form) -> str:
        """The stream of a pattern cannot be changed."""
        return "" if found["stream"] == wanted["stream"] else "the stream of a pattern cannot be changed; rename it"

    def export(self, client: ForestallClient, name: str, found: Found, keep: Files) -> Form:
        """The members that differ from the defaults."""
        return {name: value for name, value in found.form.items() if _PATTERN.get(name) != value}


class Webhooks(ResourceKind):
    """Webhooks, by name; one without a name by its id."""

    title = "webhook"

    def wanted(self, document: Document, folder: Path) -> Iterator[Wanted]:
        """The webhook; its secrets are read from the environment when it is written."""
        if document.kind != "webhook":
            return
        said = {name: document.body.get(name, usual) for name, usual in _WEBHOOK.items()}
        headers = document.body.get("headers", {})
        form = {"url": document.body["url"], **said, "headers": sorted(headers)}
        extra = {"headers": headers, "secret": document.body.get("secret")}
        yield Wanted(kind=self, name=document.name, form=form, document=document, extra=extra)

    def names(self, client: ForestallClient) -> list[str]:
        """All webhooks."""
        return [item["name"] or item["id"] for item in client.get("/webhooks")["items"]]

    def find(self, client: ForestallClient, name: str) -> Found | None:
        """A webhook."""
        for item in client.get("/webhooks")["items"]:
            if name in (item["name"], item["id"]):
                at = f"/webhooks/{part(item['id'])}"
                read = client.read(at)
                if read is not None:
                    form = {member: read[0][member] for member in ("url", *_WEBHOOK)}
                    return Found(form={**form, "headers": read[0]["header_names"]}, tag=read[1], at=at, answer=read[0])
        return None

    def put(self, client: ForestallClient, wanted: Wanted, found: Found | None) -> None:
        """Register a webhook, or change the members that differ."""
        form = wanted.form
        if found is None:
            body = {name: form[name] for name in ("url", *_WEBHOOK) if name != "enabled" and form[name] is not None}
            secret = _secret(wanted.document, "secret", wanted.extra["secret"])
            given = {"headers": _headers(wanted), **({} if secret is None else {"secret": secret})}
            made = client.post("/webhooks", {"name": wanted.name, **body, **given})
            if not form["enabled"]:
                client.patch(f"/webhooks/{part(made['id'])}", {"enabled": False})
            return
        changes = {name: form[name] for name in ("url", *_WEBHOOK) if form[name] != found.form[name]}
        if form["headers"] != found.form["headers"]:
            changes["headers"] = _headers(wanted)
        client.change("PATCH", found.at, found.tag, json=changes)

    def export(self, client: ForestallClient, name: str, found: Found, keep: Files) -> Form:
        """The members that differ from the defaults; values of headers become variables of the environment."""
        body = {member: value for member, value in found.form.items() if _WEBHOOK.get(member, ...) != value}
        headers = body.pop("headers")
        if headers:
            body["headers"] = {header: {"env": _variable(name, header)} for header in headers}
        return body


def _headers(wanted: Wanted) -> dict[str, str]:
    headers: Mapping[str, Any] = wanted.extra["headers"]
    return {name: _secret(wanted.document, "headers", value) or "" for name, value in headers.items()}


def _secret(document: Document, member: str, said: Any) -> str | None:
    """A text, or the value of an environment variable."""
    if not isinstance(said, Mapping):
        return None if said is None else str(said)
    try:
        # house: allow environment: the document says which variable, as git should not have its value
        return os.environ[said["env"]]
    except KeyError:
        raise document.refuse(f"{member}: the environment variable {said['env']} is not set", member) from None


def _variable(webhook: str, header: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in f"{webhook}_{header}").upper()
