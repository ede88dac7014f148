"""Operators in a project: the life cycle that patterns and operators of other kinds have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from service.client import ForestallClient, part
from service.projects.resources import Form, Found, ResourceKind, Wanted, tag_of

_STEPS = {("active", "paused"): "pause", ("paused", "active"): "resume", ("draft", "active"): "activate"}


class Operators(ResourceKind):
    """Operators of one kind that are not retired."""

    place: str
    """Their path in the API."""

    @abstractmethod
    def registration(self, wanted: Wanted) -> dict[str, Any]:
        """The request that registers an operator, except for its state."""

    @abstractmethod
    def fed(self, name: str, form: Form) -> str:
        """The derived stream that an operator feeds; empty: none."""

    def names(self, client: ForestallClient) -> list[str]:
        """All that are not retired."""
        return [item["name"] for item in client.get(self.place)["items"] if item["state"] != "retired"]

    def put(self, client: ForestallClient, wanted: Wanted, found: Found | None) -> None:
        """Register a different operator, then move it to its state."""
        form, at = wanted.form, f"{self.place}/{part(wanted.name)}"
        aim, state = form["state"], None if found is None else found.form["state"]
        tag = tag_of(found)
        if found is None or {**form, "state": state} != found.form or state == "retired":
            begun = "draft" if aim == "draft" and state in (None, "draft") else "active"
            client.change("POST", self.place, tag, json={**self.registration(wanted), "state": begun})
            read = client.read(at)
            tag, state = (read[1], read[0]["state"]) if read is not None else (None, begun)
        step = _STEPS.get((str(state), aim))
        if step is not None:
            client.change("POST", f"{at}/{step}", tag)


def aimed_state(answer: dict[str, Any]) -> str:
    """The state that a project intends for an operator; a suspended operator counts as active."""
    return "active" if answer["state"] == "suspended" else str(answer["state"])
