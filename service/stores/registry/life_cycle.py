"""The life cycle of an operator (pattern, join, aggregate or tap): its states, and the actions that change the state.

    draft ──activate──► active ──pause──► paused
      │                  │  ◄──resume──     │
      └──────retire──────┴──────retire──────┘──► retired
    active ──(the pipeline)──► suspended ──resume──► active; ──retire──► retired

An operator is registered as a draft, as active or as paused. Only an active operator receives events. The pipeline
suspends an operator that costs too much work. It is resumed as its next version, so that late reports about the former
version do not suspend the new version. A retired operator never runs again. It is listed, with all its results, until
it is deleted.
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
    """Return the operator after an action. If it is in the resulting state already, return it unchanged.

    If the action creates a new version, the version is registered at ``now_us``. If ``now_us`` is None, the new version
    keeps the former time of registration.

    If the state does not permit the action, raise ``WrongPatternState`` for a pattern, or ``WrongOperatorState`` for
    another operator.
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
    """Return the record of a version that starts to run, with ``held_from`` and ``held_since_us``.

    If ``before`` is given, the version continues the matching state of ``before``. Otherwise the matching state is
    empty and begins at ``now_us``, by default at the version's time of registration.
    """
    if before is None:
        since_us = record.registered_us if now_us is None else now_us
        return replace(record, held_from=record.version, held_since_us=since_us)
    return replace(record, held_from=before.held_from or before.version, held_since_us=before.since_us)


def require_writable(record: RegisteredOperator, state: FirstState) -> None:
    """Raise the error of ``wrong_state`` if an operator must not be registered again in the state ``state``.

    A retired operator cannot be registered again. Only a draft can be registered as a draft again.
    """
    if record.state == "retired":
        raise wrong_state(record, "it cannot have another version; delete it first, or take another name", [])
    if state == "draft" and record.state != "draft":
        raise wrong_state(record, "it cannot be a draft again; give the draft another name", [])


def wrong_state(
    record: RegisteredOperator, reason: str, permitted: Sequence[str]
) -> WrongPatternState | WrongOperatorState:
    """Return the error for an action that an operator's state does not permit."""
    actions: list[Any] = [*permitted, "delete"]
    sentence = f"{record.name!r} is {record.state}: {reason}; possible actions: {', '.join(actions)}"
    if record.kind == PATTERN:
        return WrongPatternState(f"the pattern {sentence}", pattern=record.name, state=record.state, permitted=actions)
    return WrongOperatorState(
        f"the {record.kind} {sentence}", kind=record.kind, name=record.name, state=record.state, permitted=actions
    )
