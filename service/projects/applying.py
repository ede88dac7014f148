"""Applies a plan: changes a service step by step until it equals a project."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from service.client import ApiError, Client, ResourceChanged
from service.errors import ApplyStopped
from service.projects.planning import Change, Plan, difference, note_ownership


def apply_plan(client: Client, plan: Plan, tell: Callable[[Change], None]) -> None:
    """Make the changes of a plan in order; ``tell`` is called with each change after it is made.

    Raises ``ApplyStopped`` if a resource has changed since the plan was made, or the service refuses a change. The
    error names the changes that were not made; earlier changes stay.
    """
    work, owner = plan.work, plan.ownership
    unnamed = {change.identity for change in plan.changes if change.wanted is None} & owner.own
    if owner.own != plan.named | unnamed:
        note_ownership(client, owner.project, plan.named | unnamed)
    for number, change in enumerate(work):
        try:
            _make(client, change)
        except ApiError as error:
            raise _stopped(client, work, number, error) from error
        tell(change)
    deleted = {change.identity for change in work if change.action == "gone"}
    if deleted:
        note_ownership(client, owner.project, (plan.named | unnamed) - deleted)


def _make(client: Client, change: Change) -> None:
    """Make a change if the resource still has the form that the plan found, even if its ``ETag`` has changed."""
    current = change.kind.find(client, change.name)
    if (None if current is None else current.form) != (None if change.found is None else change.found.form):
        raise ResourceChanged(
            "somebody else has changed it",
            status=HTTPStatus.PRECONDITION_FAILED,
            problem={},
            request_id="",
            retry_after_s=None,
        )
    if change.wanted is not None:
        change.kind.put(client, change.wanted, current)
    elif current is not None:
        change.kind.remove(client, current)


def _stopped(client: Client, work: list[Change], number: int, error: ApiError) -> ApplyStopped:
    change = work[number]
    unmade = ", ".join(pending.title for pending in work[number:])
    status = error.status
    reason = error.message
    if status in (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.CONFLICT):
        now = change.kind.find(client, change.name)
        before = None if change.found is None else change.found.form
        lines = difference(before, None if now is None else now.form)
        if lines:
            changed_lines = "\n".join(f"    {line}" for line in lines)
            reason = (
                f"somebody else has changed it since the plan was made (412):\n{changed_lines}\n"
                "  apply again to see the plan"
            )
    return ApplyStopped(
        f"{change.title}: {reason}\n{number} of {len(work)} changes are made; not made: {unmade}",
        status=status,
        made=number,
        left=[pending.title for pending in work[number:]],
    )
