"""The placement of NOT, gap prefixes, GREEDY and quantifiers (``docs/semantics.md``, sections 4.2 and 4.7)."""

from __future__ import annotations

from collections.abc import Iterator

from nfa.errors import PatternRefused
from nfa.language.description import describe_atom
from nfa.syntax import (
    NOWHERE,
    Atom,
    Conjunction,
    Item,
    Node,
    Pattern,
    Position,
    Repeat,
    Sequence,
    atoms_of,
    can_be_empty,
    parts_of,
)


def check_placement(node: Node) -> None:
    """Refuse NOT, gap prefixes, GREEDY and quantifiers at places where they have no meaning."""
    match node:
        case Sequence():
            _check_sequence(node)
        case Conjunction():
            for part in node.parts:
                _check_edges(part, "a part of AND")
        case Repeat():
            _check_repeat(node)
        case _:
            pass
    if not isinstance(node, Atom | Repeat) and node.within_us is not None:
        _check_edges(node, "a part with WITHIN")
    for part in parts_of(node):
        check_placement(part)


def check_window(pattern: Pattern) -> None:
    """Refuse a NOT before the first step if the pattern's WITHIN is in business time."""
    leading = next(_leading_items(pattern.event), None) if pattern.within_business is not None else None
    if leading is not None:
        raise PatternRefused(
            "not-placement",
            "WITHIN in business time looks ahead, so a NOT before the first step has no meaning; write WITHIN in hours "
            "or days without 'business'",
            leading.position,
        )


def trailing_items(node: Node) -> Iterator[Item]:
    """Return the NOTs at the end of a pattern, in any order. A match may bind no event after them."""
    return (item for item in _at_edge(node, is_last=True) if isinstance(item, Item))


def trailing_greedy(node: Node) -> Iterator[Repeat]:
    """Return the GREEDY repetitions at the end of a pattern, in any order. A match may bind no event after them."""
    return (repeat for repeat in _at_edge(node, is_last=True) if isinstance(repeat, Repeat))


def _leading_items(node: Node) -> Iterator[Item]:
    return (item for item in _at_edge(node, is_last=False) if isinstance(item, Item))


def _at_edge(node: Node, *, is_last: bool) -> Iterator[Item | Repeat]:
    if isinstance(node, Repeat) and node.greedy:
        yield node
    if isinstance(node, Sequence):
        for item in node.items[:: -1 if is_last else 1]:
            if item.of is None:
                yield item
            else:
                yield from _at_edge(item.of, is_last=is_last)
                if not can_be_empty(item.of):
                    return
    else:
        for part in parts_of(node):
            yield from _at_edge(part, is_last=is_last)


def _check_edges(node: Node, place: str) -> None:
    for item in (*_leading_items(node), *trailing_items(node)):
        assert item.negated is not None
        raise PatternRefused(
            "not-placement",
            f"NOT {describe_atom(item.negated)} is at the edge of {place}, where there is no gap between steps; put "
            f"it between two steps of that part that always occur, or outside the part",
            item.position,
        )
    for repeat in trailing_greedy(node):
        raise PatternRefused(
            "greedy-placement",
            f"GREEDY is at the end of {place}, where there is no gap between steps; add a step that always occurs "
            f"after it in that part, or remove GREEDY",
            repeat.position,
        )


def _check_sequence(node: Sequence) -> None:
    if not node.parts:
        place = node.items[0].position if node.items else NOWHERE
        raise PatternRefused("no-positive-step", "every step of this SEQ is negated; add a step that must occur", place)
    is_first = True
    for number, item in enumerate(node.items):
        if item.gap is not None:
            _check_gap(item, is_first)
        if item.negated is not None and item.gap is not None and item.gap.mode == "strict":
            _check_strict_not(item, node.items[number + 1 :])
        is_first = is_first and item.of is None


def _check_gap(item: Item, is_first: bool) -> None:
    assert item.gap is not None
    if item.negated is not None and item.gap.mode in ("any", "next"):
        mode = item.gap.mode.upper()
        raise PatternRefused(
            "gap-placement",
            f"{mode} NOT has no meaning; write NOT for the whole gap, or STRICT NOT for the next event only",
            item.position,
        )
    if is_first:
        raise PatternRefused(
            "gap-placement",
            "the first step of a SEQ has no gap before it; write the prefix before the SEQ if it follows another "
            "step, or remove it",
            item.position,
        )


def _check_strict_not(item: Item, later_items: tuple[Item, ...]) -> None:
    if all(later_item.of is None or can_be_empty(later_item.of) for later_item in later_items):
        raise PatternRefused(
            "gap-placement",
            "STRICT NOT is about the event directly before the next step of its SEQ, but no step always follows; "
            "write NOT, or add a step",
            item.position,
        )


def _check_repeat(node: Repeat) -> None:
    if can_be_empty(node.of):
        raise PatternRefused(
            "nullable-repeat",
            "the body of a repetition must match at least one event; make one of its steps required, or remove the "
            "quantifier",
            node.position,
        )
    if node.greedy and not isinstance(node.of, Atom):
        raise PatternRefused(
            "greedy-group",
            "GREEDY applies to a single repeated step, not to a group; write it after the quantifier of a step",
            node.position,
        )


def first_position(node: Node) -> Position:
    """Return the position of the part's first step."""
    return next((atom.position for atom in atoms_of(node)), NOWHERE)
