"""Applies a plan: changes a service step by step until it equals a project."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any

from service.client import ApiError, Client, ResourceChanged
from service.errors import ApplyStopped, DerivationRefused, ProjectRefused, StreamInUse, TableInUse, WebhookNameTaken
from service.projects.planning import Change, Plan, difference, note_ownership
from service.projects.streams import ConstraintSets, Following, Streams, Workflows

_RETRIED = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
"""The statuses of refusals whose reason another change of the plan may remove."""

_IN_THE_WAY = {error.code for error in (DerivationRefused, StreamInUse, TableInUse, WebhookNameTaken)}
"""The codes of refusals because of operators, webhooks or sinks that exist."""

_RULES, _MOST = 1, 2


def apply_plan(client: Client, plan: Plan, tell: Callable[[Change], None]) -> None:
    """Make the changes of a plan. ``tell`` is called with each change after it is made.

    If the service refuses a change, the change is tried again after others. Raises ``ApplyStopped`` if the service
    still refuses a change, if a resource has changed since the plan was made, or if a secret is missing in the
    environment. The error lists the changes that were not made. The changes made before are kept.
    """
    work, owner = plan.work, plan.ownership
    unnamed = {change.identity for change in plan.changes if change.wanted is None} & owner.own
    if owner.own != plan.named | unnamed:
        note_ownership(client, owner.project, added=plan.named, removed=owner.own - plan.named - unnamed)
    _make_all(client, work, tell)
    deleted = {change.identity for change in work if change.action == "gone"}
    if deleted:
        note_ownership(client, owner.project, removed=deleted)


def warnings_about(client: Client, plan: Plan) -> Iterator[tuple[Change, str]]:
    """Yield the service's warnings about new and changed resources, each once, after the changes were made.

    Answers to single changes are not used, because they may warn of names that later changes of the plan introduce.
    Each resource is read at most once. Workflows come last, because they repeat the warnings about their streams.
    """

    @cache
    def ask(path: str) -> Mapping[str, Any]:
        tagged = client.find(path)
        return {} if tagged is None else tagged[0]

    seen = set[str]()
    for change in sorted(plan.work, key=lambda change: isinstance(change.kind, Workflows)):
        for warning in () if change.wanted is None else change.kind.warnings(ask, change.wanted):
            if warning not in seen:
                seen.add(warning)
                yield change, warning


def _make_all(client: Client, work: Sequence[Change], tell: Callable[[Change], None]) -> None:
    """Make changes in rounds until all are made. Raise ``ApplyStopped`` if the remaining changes are refused.

    While the service refuses new or changed resources, only deletions up to a limit for ``_loss`` are made. A round
    without any change raises this limit. Thus as little data as possible is deleted.
    """
    left, loss = work, 0
    while left:
        refusals: list[tuple[Change, ApiError]] = []
        later: list[Change] = []
        for number, change in enumerate(left):
            if _loss(change) > loss and any(refused.wanted for refused, _ in refusals):
                later.append(change)
                continue
            try:
                _make(client, change)
            except (ApiError, ProjectRefused) as error:
                if not isinstance(error, ApiError) or error.status not in _RETRIED:
                    raise _stopped(client, change, error, [*later, *left[number:]], len(work)) from error
                refusals.append((change, error))
                later.append(change)
            else:
                tell(change)
        most = _MOST if any(error.code in _IN_THE_WAY for _, error in refusals) else _RULES
        if len(later) == len(left) and loss >= most:
            change, reason = refusals[0]
            raise _stopped(client, change, reason, later, len(work)) from reason
        left, loss = later, loss + 1 if len(later) == len(left) else 0


def _loss(change: Change) -> int:
    """Return how much data a change deletes, as a rank: 0 for none, the highest for a stream with its events."""
    if change.wanted is not None:
        return 0
    if isinstance(change.kind, Streams):
        return _MOST + 1
    return _RULES if isinstance(change.kind, (ConstraintSets, Following)) else _MOST


def _make(client: Client, change: Change) -> None:
    """Make a change. Raise ``ResourceChanged`` if the form of the resource has changed since the plan was made.

    A change that affects only the ``ETag`` does not matter.
    """
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


def _stopped(
    client: Client, change: Change, error: ApiError | ProjectRefused, left: Sequence[Change], total: int
) -> ApplyStopped:
    titles = [pending.title for pending in left]
    status = error.status if isinstance(error, ApiError) else None
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
    count = total - len(left)
    return ApplyStopped(
        f"{change.title}: {reason}\n{count} of {total} changes are made; not made: {', '.join(titles)}",
        status=status,
        made=count,
        left=[*titles],
    )
