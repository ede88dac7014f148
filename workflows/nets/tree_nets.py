"""Converts process trees to nets with one source, one sink, and only plain places and transitions."""

from __future__ import annotations

from itertools import product, repeat

from workflows.errors import UnderivableWorkflow
from workflows.nets.assembly import Assembly
from workflows.nets.net import Transition
from workflows.nets.normal_forms import is_short
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
    parts_of,
)

_MOST_LISTED = 4


def can_be_net(tree: ProcessTree) -> bool:
    """Return whether ``put_tree`` accepts a tree."""
    return is_short(tree.body) if isinstance(tree, Instances) else all(map(can_be_net, parts_of(tree)))


def put_tree(assembly: Assembly, tree: ProcessTree, source: int, sink: int) -> None:
    """Add the steps of a process tree to a net. Each trace of the tree moves a token from ``source`` to ``sink``.

    The tree must satisfy ``can_be_net``.
    """
    match tree:
        case Activity(name):
            element = tree.origin or f"activity {name!r}"
            assembly.step(Transition(inputs=(source,), outputs=(sink,), label=name, element=element))
        case Silent():
            assembly.silent((source,), (sink,), "a silent step")
        case Sequence(parts):
            _put_sequence(assembly, parts, source, sink)
        case ExclusiveChoice(branches):
            for branch in branches:
                put_tree(assembly, branch, source, sink)
        case Parallel(branches):
            ends = _put_branches(assembly, branches)
            assembly.silent((source,), (begin for begin, _ in ends), tree.origin or "a parallel split")
            assembly.silent((end for _, end in ends), (sink,), tree.origin or "a parallel join")
        case InclusiveChoice():
            _put_inclusive(assembly, tree, source, sink)
        case Loop():
            _put_loop(assembly, tree, source, sink)
        case Instances():
            _put_instances(assembly, tree, source, sink)


def _put_sequence(assembly: Assembly, parts: tuple[ProcessTree, ...], source: int, sink: int) -> None:
    for part in parts[:-1]:
        following = assembly.place(f"after {_words(part)}")
        put_tree(assembly, part, source, following)
        source = following
    put_tree(assembly, parts[-1], source, sink)


def _put_branches(assembly: Assembly, branches: tuple[ProcessTree, ...]) -> list[tuple[int, int]]:
    ends = []
    for branch in branches:
        begin, end = assembly.place(f"before {_words(branch)}"), assembly.place(f"after {_words(branch)}")
        put_tree(assembly, branch, begin, end)
        ends.append((begin, end))
    return ends


def _put_inclusive(assembly: Assembly, tree: InclusiveChoice, source: int, sink: int) -> None:
    if len(tree.branches) <= _MOST_LISTED:
        _put_listed(assembly, tree, source, sink)
    else:
        _put_one_by_one(assembly, tree, source, sink)


def _put_instances(assembly: Assembly, tree: Instances, source: int, sink: int) -> None:
    """Add concurrent instances of at most one event each as a loop, which has the same traces."""
    if not is_short(tree.body):
        names = activity_names(tree)
        raise UnderivableWorkflow(
            f"{', '.join(names)} run any number of times at once; no net with bounded places does that",
            activities=list(names),
        )
    put_tree(assembly, Loop(body=tree.body, origin=tree.origin), source, sink)


def _put_listed(assembly: Assembly, tree: InclusiveChoice, source: int, sink: int) -> None:
    ends = _put_branches(assembly, tree.branches)
    element = tree.origin or "an inclusive choice"
    for choice in product((True, False), repeat=len(ends)):
        if any(choice):
            outputs = (begin if is_in else end for (begin, end), is_in in zip(ends, choice, strict=True))
            assembly.silent((source,), outputs, element)
    assembly.silent((end for _, end in ends), (sink,), element)


def _put_one_by_one(assembly: Assembly, tree: InclusiveChoice, source: int, sink: int) -> None:
    """Add an inclusive choice by steps that decide branch after branch.

    Until a branch is taken, the token is on one of the places ``none``. From the last of these, the last branch must be
    taken.
    """
    ends = _put_branches(assembly, tree.branches)
    element = tree.origin or "an inclusive choice"
    none, some = source, -1
    for index, (begin, end) in enumerate(ends):
        is_last = index == len(ends) - 1
        next_some = assembly.place(f"{element}: {index + 1} branches decided, some taken")
        assembly.silent((none,), (begin, next_some), element)
        if index:
            assembly.silent((some,), (begin, next_some), element)
            assembly.silent((some,), (end, next_some), element)
        if not is_last:
            next_none = assembly.place(f"{element}: {index + 1} branches decided, none taken")
            assembly.silent((none,), (end, next_none), element)
            none = next_none
        some = next_some
    assembly.silent((some, *(end for _, end in ends)), (sink,), element)


def _put_loop(assembly: Assembly, tree: Loop, source: int, sink: int) -> None:
    if tree.repetitions is not None:
        parts: list[ProcessTree] = [tree.body]
        for part in repeat((tree.redo, tree.body), tree.repetitions - 1):
            parts += part
        _put_sequence(assembly, tuple(parts), source, sink)
        return
    element = tree.origin or "a loop"
    begin, end = assembly.place(f"before a round of {element}"), assembly.place(f"after a round of {element}")
    assembly.silent((source,), (begin,), element)
    put_tree(assembly, tree.body, begin, end)
    put_tree(assembly, tree.redo, end, begin)
    assembly.silent((end,), (sink,), element)


def _words(tree: ProcessTree) -> str:
    match tree:
        case Silent():
            return "a silent step"
        case Activity(name):
            return tree.origin or f"activity {name!r}"
        case _ if tree.origin:
            return tree.origin
    names = activity_names(tree)
    return f"a block with {', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"
