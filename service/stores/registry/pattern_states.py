"""The states of a pattern, and what leads from one to another.

    draft ──activate──► active ──pause──► paused
      │                  │  ◄──resume──     │
      └──────retire──────┴──────retire──────┘──► retired

    active ──(the pipeline)──► suspended ──resume──► active; ──retire──► retired

Only an active pattern sees events. A suspended one cost too much work; resumed, it is its next version, so that what
the pipeline said of the one before is not taken for this one. A retired one stays listed with all that was found, and
is never matched again; it may be deleted, as may any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from service.errors import WrongPatternState
from service.stores.registry.registered import PatternState, RegisteredPattern

PatternAction: TypeAlias = Literal["activate", "pause", "resume", "retire"]

_MOVES: Mapping[PatternAction, Mapping[PatternState, PatternState]] = {
    "activate": {"draft": "active", "active": "active"},
    "pause": {"active": "paused", "paused": "paused"},
    "resume": {"paused": "active", "suspended": "active", "active": "active"},
    "retire": dict.fromkeys(("draft", "active", "paused", "suspended", "retired"), "retired"),
}


def moved(pattern: RegisteredPattern, action: PatternAction, now_us: int | None = None) -> RegisteredPattern:
    """The pattern after an action; itself where it is in that state already.

    Args:
        pattern: As it is.
        action: What leads to another state.
        now_us: When a version that begins by it begins; None: when that before did.

    Raises:
        WrongPatternState: The action does not begin in its state.
    """
    state = _MOVES[action].get(pattern.state)
    if state is None:
        permitted = [name for name, moves in _MOVES.items() if moves.get(pattern.state, pattern.state) != pattern.state]
        raise wrong_state(pattern, f"it cannot be {action}d", permitted)
    if state == pattern.state:
        return pattern
    stage = state if state == "retired" else "running"
    after = replace(pattern, stage=stage, is_paused=state == "paused", suspension=None)
    if pattern.state != "suspended" or state != "active":
        return after
    registered_us = pattern.registered_us if now_us is None else now_us
    return replace(after, version=pattern.version + 1, registered_us=registered_us)


def require_writable(pattern: RegisteredPattern, *, is_draft: bool) -> None:
    """Check that a pattern may have another version.

    Raises:
        WrongPatternState: It is retired; or the version is to be a draft and the pattern is none any more.
    """
    if pattern.state == "retired":
        raise wrong_state(pattern, "it cannot have another version; delete it first, or take another name", [])
    if is_draft and pattern.state != "draft":
        raise wrong_state(pattern, "it cannot be a draft again; give the draft another name", [])


def wrong_state(pattern: RegisteredPattern, why: str, permitted: Sequence[str]) -> WrongPatternState:
    """The error for what does not go together with a pattern's state."""
    can = f"; what it can: {', '.join([*permitted, 'delete'])}"
    return WrongPatternState(
        f"the pattern {pattern.name!r} is {pattern.state}: {why}{can}",
        pattern=pattern.name,
        state=pattern.state,
        permitted=[*permitted, "delete"],
    )
