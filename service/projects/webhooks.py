"""Webhooks in a project."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from service.client import ForestallClient, part
from service.projects.documents import Document
from service.projects.resources import Files, Form, Found, ResourceKind, Wanted
from service.stores import USUAL_KINDS

_WEBHOOK: Form = {
    "stream": None,
    "pattern": None,
    "min_severity": None,
    "kinds": list(USUAL_KINDS),
    "description": "",
    "template": None,
    "digest": None,
    "enabled": True,
}


class Webhooks(ResourceKind):
    """Webhooks, by name; one without a name by its id."""

    title = "webhook"

    def wanted(self, document: Document, folder: Path) -> Iterator[Wanted]:
        """The webhook; its secrets are read from the environment when it is written."""
        if document.kind != "webhook":
            return
        given = {name: document.body.get(name, usual) for name, usual in _WEBHOOK.items()}
        if given["digest"] is not None:
            given["digest"] = {"at_once": None, **given["digest"]}
        headers = document.body.get("headers", {})
        form = {"url": document.body["url"], **given, "headers": sorted(headers)}
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


def _secret(document: Document, member: str, value: Any) -> str | None:
    """A text, or the value of an environment variable."""
    if not isinstance(value, Mapping):
        return None if value is None else str(value)
    try:
        # house: allow environment: the document says which variable, as git should not have its value
        return os.environ[value["env"]]
    except KeyError:
        raise document.refuse(f"{member}: the environment variable {value['env']} is not set", member) from None


def _variable(webhook: str, header: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in f"{webhook}_{header}").upper()
