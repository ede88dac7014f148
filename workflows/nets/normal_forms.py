"""Builds process trees in a normal form: without nested sequences and without parts that have no effect."""

from __future__ import annotations

from collections.abc import Iterable

from workflows.tree import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Instances,
    Loop,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
    activity_names,
)

NOTHING = Silent()


def sequence(parts: Iterable[ProcessTree], origin: str = "") -> ProcessTree:
    """Return the sequence of all parts as a tree in normal form."""
    flat = _flat([*part.parts] if isinstance(part, Sequence) else [part] for part in parts)
    return Sequence(flat, origin=origin) if len(flat) > 1 else flat[0] if flat else NOTHING


def _flat(groups: Iterable[list[ProcessTree]]) -> tuple[ProcessTree, ...]:
    return tuple(part for group in groups for part in group if not isinstance(part, Silent))


def choice(branches: Iterable[ProcessTree], origin: str = "") -> ProcessTree:
    """Return an exclusive choice between the branches, in normal form: equal leaves merged, a silent branch last."""
    flat: list[ProcessTree] = []
    seen: set[str | None] = set()
    for branch in branches:
        nested = isinstance(branch, ExclusiveChoice) and (branch.origin == origin or not branch.origin)
        for part in branch.branches if isinstance(branch, ExclusiveChoice) and nested else (branch,):
            if isinstance(part, Activity | Silent):
                name = part.name if isinstance(part, Activity) else None
                if name in seen:
                    continue
                seen.add(name)
            flat.append(part)
    flat.sort(key=lambda part: isinstance(part, Silent))
    return flat[0] if len(flat) == 1 else ExclusiveChoice(tuple(flat), origin=origin)


def parallel(branches: Iterable[ProcessTree], origin: str = "") -> ProcessTree:
    """Return the parallel block of all branches as a tree in normal form."""
    flat = _flat([*branch.branches] if isinstance(branch, Parallel) else [branch] for branch in branches)
    return Parallel(flat, origin=origin) if len(flat) > 1 else flat[0] if flat else NOTHING


def inclusive(branches: Iterable[ProcessTree], origin: str = "") -> ProcessTree:
    """Return an inclusive choice, one or more of the branches, as a tree in normal form."""
    flat: list[ProcessTree] = []
    for branch in branches:
        parts = branch.branches if isinstance(branch, InclusiveChoice) else (branch,)
        flat.extend(part for part in parts if not isinstance(part, Silent) or part not in flat)
    return flat[0] if len(flat) == 1 else InclusiveChoice(tuple(flat), origin=origin)


def loop(body: ProcessTree, redo: ProcessTree, origin: str = "") -> ProcessTree:
    """Return a loop: the body once, then any number of times the redo part followed by the body."""
    if isinstance(body, Silent) and isinstance(redo, Silent):
        return NOTHING
    return Loop(body=body, redo=redo, origin=origin)


def is_short(tree: ProcessTree) -> bool:
    """Return whether every trace of a tree has at most one event."""
    match tree:
        case Activity() | Silent():
            return True
        case ExclusiveChoice(parts):
            return all(map(is_short, parts))
        case Sequence(parts) | Parallel(parts) | InclusiveChoice(parts):
            return all(map(is_short, parts)) and sum(bool(activity_names(part)) for part in parts) <= 1
        case Instances() | Loop():
            return not activity_names(tree)
