"""The states of an operator, patterns included, and the actions that lead from one state to another.

    draft ──activate──► active ──pause──► paused
      │                  │  ◄──resume──     │
      └──────retire──────┴──────retire──────┘──► retired
    active ──(the pipeline)──► suspended ──resume──► active; ──retire──► retired

A registration leads to a draft, or to an active or paused operator. Only an active operator sees events. A suspended
operator cost too much work, and is resumed as its next version, so the pipeline's reports about the former version do
not suspend the new version. A retired operator stays listed with all its results until its deletion, and never runs
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from service.errors import WrongOperatorState, WrongPatternState
from service.stores.registry.registered import PATTERN, FirstState, RegisteredOperator, State

Action: TypeAlias = Literal["activate", "pause", "resume", "retire"]

_MOVES: Mapping[Action, Mapping[State, State]] = {
    "activate": {"draft": "active", "active": "active"},
    "pause": {"active": "paused", "paused": "paused"},
    "resume": {"paused": "active", "suspended": "active", "active": "active"},
    "retire": dict.fromkeys(("draft", "active", "paused", "suspended", "retired"), "retired"),
}


def moved(record: RegisteredOperator, action: Action, now_us: int | None = None) -> RegisteredOperator:
    """The operator after an action; unchanged if it is in the resulting state already.

    ``now_us`` is the time of registration if the action begins a new version; None: the time of the former version. An
    action that the state does not permit raises ``WrongPatternState``; for other kinds, ``WrongOperatorState``.
    """
    state = _MOVES[action].get(record.state)
    if state is None:
        permitted = [name for name, moves in _MOVES.items() if moves.get(record.state, record.state) != record.state]
        raise wrong_state(record, f"it cannot be {action}d", permitted)
    if state == record.state:
        return record
    stage: Literal["retired", "running"] = "retired" if state == "retired" else "running"
    after = replace(record, stage=stage, is_paused=state == "paused", suspension=None)
    if record.state != "suspended" or state != "active":
        return after
    registered_us = record.registered_us if now_us is None else now_us
    return replace(after, version=record.version + 1, registered_us=registered_us)


def begun(
    record: RegisteredOperator, before: RegisteredOperator | None, now_us: int | None = None
) -> RegisteredOperator:
    """The record of a version that begins to run, with the time at which its matching state began.

    ``before``: the version whose matching state is continued; None: the version begins without state, at ``now_us`` or,
    if None, its time of registration.
    """
    if before is None:
        since_us = record.registered_us if now_us is None else now_us
        return replace(record, held_from=record.version, held_since_us=since_us)
    return replace(record, held_from=before.held_from or before.version, held_since_us=before.since_us)


def require_writable(record: RegisteredOperator, state: FirstState) -> None:
    """Check that an operator may be registered again with a state: a retired one may not, a draft only as a draft."""
    if record.state == "retired":
        raise wrong_state(record, "it cannot have another version; delete it first, or take another name", [])
    if state == "draft" and record.state != "draft":
        raise wrong_state(record, "it cannot be a draft again; give the draft another name", [])


def wrong_state(
    record: RegisteredOperator, reason: str, permitted: Sequence[str]
) -> WrongPatternState | WrongOperatorState:
    """The error for an action that an operator's state does not permit."""
    actions: list[Any] = [*permitted, "delete"]
    sentence = f"{record.name!r} is {record.state}: {reason}; possible actions: {', '.join(actions)}"
    if record.kind == PATTERN:
        return WrongPatternState(f"the pattern {sentence}", pattern=record.name, state=record.state, permitted=actions)
    return WrongOperatorState(
        f"the {record.kind} {sentence}", kind=record.kind, name=record.name, state=record.state, permitted=actions
    )
