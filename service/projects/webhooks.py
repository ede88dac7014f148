"""Webhooks and other sinks of a project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.client import Client, condition, part
from service.projects.documents import Document
from service.projects.resources import Files, Form, ResourceKind, StoredResource, Wanted
from shards import USUAL_KINDS

_WEBHOOK: Form = {
    "stream": None,
    "pattern": None,
    "key": None,
    "min_severity": None,
    "kinds": list(USUAL_KINDS),
    "description": "",
    "template": None,
    "digest": None,
    "enabled": True,
}
_OWN: Mapping[str, Form] = {
    "parquet": {},
    "email": {"port": 465, "security": "tls", "user": None},
    "kafka": {"options": {}},
}
_MEMBERS = {
    "parquet": ("path",),
    "email": ("host", "port", "security", "user", "sender", "recipients"),
    "kafka": ("servers", "topic", "options"),
}


class Webhooks(ResourceKind):
    """The webhooks of a project, identified by name, or by id if they have no name."""

    title = "webhook"
    path = "/webhooks"

    def read(self, document: Document, folder: Path) -> Wanted:
        """Read a webhook. Its secrets are read from environment variables only when it is written to the service."""
        members = {name: document.body.get(name, default) for name, default in _WEBHOOK.items()}
        members["kinds"] = list(dict.fromkeys(members["kinds"]))
        if members["digest"] is not None:
            members["digest"] = {"at_once": None, **members["digest"]}
        headers = document.body.get("headers", {})
        form = {"url": document.body["url"], **members, "headers": sorted(headers)}
        extra = {"headers": headers, "secret": document.body.get("secret")}
        return Wanted(kind=self, name=document.name, form=form, document=document, extra=extra)

    def names(self, client: Client) -> list[str]:
        return [item["name"] or item["id"] for item in client.pages(self.path)]

    def at(self, client: Client, name: str) -> str | None:
        """Return the path of a webhook or sink in the API, by its name or id, or None if it does not exist."""
        ids = (item["id"] for item in client.pages(self.path) if name in (item["name"], item["id"]))
        return next((f"{self.path}/{part(receiver_id)}" for receiver_id in ids), None)

    def form_of(self, client: Client, at: str, answer: Any) -> Form:
        form = {member: answer[member] for member in ("url", *_WEBHOOK)}
        return {**form, "headers": answer["header_names"]}

    def put(self, client: Client, wanted: Wanted, stored: StoredResource | None) -> None:
        form = wanted.form
        if stored is None:
            shared = {name: form[name] for name in _WEBHOOK if form[name] is not None}
            members = {"name": wanted.name, **shared, **self._own(wanted), **_secret_of(wanted)}
            client.post(self.path, members)
            return
        changes = {name: form[name] for name in _WEBHOOK if form[name] != stored.form[name]}
        body = {**changes, **self._own_changes(wanted, stored)}
        client.request("PATCH", stored.at, body=body, headers=condition(stored.tag))

    def _own(self, wanted: Wanted) -> Form:
        """Return the members of a creation request that are specific to webhooks."""
        return {"url": wanted.form["url"], "headers": _headers(wanted)}

    def _own_changes(self, wanted: Wanted, stored: StoredResource) -> Form:
        """Return the members of ``_own`` that differ from the stored webhook."""
        changes: Form = {} if wanted.form["url"] == stored.form["url"] else {"url": wanted.form["url"]}
        return changes if wanted.form["headers"] == stored.form["headers"] else {**changes, "headers": _headers(wanted)}

    def export(self, client: Client, name: str, stored: StoredResource, keep: Files) -> Form:
        """Return the members that differ from the defaults.

        The values of headers are replaced by names of environment variables.
        """
        body = {member: value for member, value in stored.form.items() if _WEBHOOK.get(member, ...) != value}
        headers = body.pop("headers")
        if headers:
            body["headers"] = {header: {"env": _variable(name, header)} for header in headers}
        return body


class Sinks(Webhooks):
    """The sinks of a project other than webhooks, identified by name.

    A document has a member named after the sink's kind, such as ``kafka``, which contains the members of this kind.
    """

    title = "sink"
    path = "/sinks"

    def read(self, document: Document, folder: Path) -> Wanted:
        """Read a sink. Its password is read from an environment variable only when it is written to the service."""
        kinds = [kind for kind in _OWN if kind in document.body]
        if len(kinds) != 1:
            raise document.refuse(f"a sink has one of {', '.join(_OWN)}")
        form = {name: document.body.get(name, default) for name, default in _WEBHOOK.items()}
        form["kinds"] = list(dict.fromkeys(form["kinds"]))
        if form["digest"] is not None or kinds[0] == "parquet":
            form["digest"] = {"every": "1 min", "at_once": None, **(form["digest"] or {})}
        form[kinds[0]] = {**_OWN[kinds[0]], **document.body[kinds[0]]}
        extra = {"secret": document.body.get("secret")}
        return Wanted(kind=self, name=document.name, form=form, document=document, extra=extra)

    def form_of(self, client: Client, at: str, answer: Any) -> Form:
        kind_members = {member: answer[member] for member in _MEMBERS[answer["kind"]]}
        return {**{member: answer[member] for member in _WEBHOOK}, answer["kind"]: kind_members}

    def _own(self, wanted: Wanted) -> Form:
        kind = next(kind for kind in _OWN if kind in wanted.form)
        return {"kind": kind, **wanted.form[kind]}

    def _own_changes(self, wanted: Wanted, stored: StoredResource) -> Form:
        kind = next(kind for kind in _OWN if kind in wanted.form)
        changes = {name: value for name, value in wanted.form[kind].items() if value != stored.form[kind][name]}
        return {**changes, **_secret_of(wanted)} if changes else {}  # a new server must not get the old password

    def cannot_change(self, stored: StoredResource, wanted: Form) -> str:
        """Return why a sink cannot be changed as wanted, or an empty text if it can. The kind of a sink is fixed."""
        is_same = any(kind in stored.form and kind in wanted for kind in _OWN)
        return "" if is_same else "the kind of a sink cannot be changed"

    def export(self, client: Client, name: str, stored: StoredResource, keep: Files) -> Form:
        """Return the members that differ from the defaults.

        The password is replaced by the name of an environment variable.
        """
        body = {member: value for member, value in stored.form.items() if _WEBHOOK.get(member, ...) != value}
        kind_members = body[stored.answer["kind"]]
        has_secret = kind_members.get("user") is not None or "sasl.username" in kind_members.get("options", {})
        return {**body, "secret": {"env": _variable(name, "secret")}} if has_secret else body


def _headers(wanted: Wanted) -> dict[str, str]:
    headers: Mapping[str, Any] = wanted.extra["headers"]
    return {name: _secret(wanted.document, "headers", value) or "" for name, value in headers.items()}


def _secret_of(wanted: Wanted) -> dict[str, str]:
    secret = _secret(wanted.document, "secret", wanted.extra["secret"])
    return {} if secret is None else {"secret": secret}


def _secret(document: Document, member: str, value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return None if value is None else str(value)
    try:
        # house: allow environment: the document names the variable, so that git does not hold the value
        return os.environ[value["env"]]
    except KeyError:
        raise document.refuse(f"{member}: the environment variable {value['env']} is not set", member) from None


def _variable(webhook: str, header: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in f"{webhook}_{header}").upper()
