"""Checks of a pattern against its stream, and warnings about accepted patterns that are probably mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nfa.errors import PatternRefused
from nfa.language.description import describe_expression
from nfa.language.placement import first_position, trailing_greedy, trailing_items
from nfa.language.scope import all_atoms_of
from nfa.syntax import (
    AGGREGATES,
    Atom,
    Both,
    Call,
    Comparison,
    Conjunction,
    Disjunction,
    Expression,
    Item,
    Node,
    Pattern,
    Position,
    Repeat,
    attributes_of,
    calls_of,
    parts_of,
    subexpressions,
)


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning about an accepted pattern.

    Attributes:
        code: ``unbounded-repetition``, ``unbounded-work``, ``no-within``, ``no-trace-end``, ``where-of-one-step``,
            ``constant-key``, ``unknown-type``, ``unknown-attribute``, ``every-row``, ``own-member``, ``no-alias``,
            ``element-path``, ``bare-text``, ``list-member``, ``text-key`` or ``incomparable``.
    """

    code: str
    message: str
    position: Position

    @property
    def placed(self) -> str:
        return f"line {self.position.line}, column {self.position.column}: {self.message}"


def check_stream(pattern: Pattern, *, has_trace_end: bool, has_closing: bool = False, further_key: str = "") -> None:
    """Refuse a pattern that waits for the end of a trace, if no trace of its stream ever ends.

    ``has_trace_end`` says that end events or an idle timeout end the traces. ``has_closing`` says that a guard knows an
    event that is always the last of its trace. Such an event decides a NOT, but does not end a GREEDY repetition.
    ``further_key`` is the key of the traces if it is not the correlation key. Nothing ends such traces.
    """
    if has_trace_end or pattern.has_window:
        return
    for item in trailing_items(pattern.event):
        if not has_closing and _is_endless(item):
            _refuse_endless("NOT", item.position, "WITHIN before the NOT, or as a clause", further_key)
    for repeat in trailing_greedy(pattern.event):
        if repeat.max is None or repeat.min < repeat.max:
            _refuse_endless("GREEDY", repeat.position, "the clause WITHIN", further_key)


def warnings_of(
    pattern: Pattern, *, has_trace_end: bool, has_closing: bool = False, further_key: str = ""
) -> tuple[Notice, ...]:
    """Return warnings about parts of an accepted pattern that are probably mistakes, in the order of the text.

    The arguments are those of ``check_stream``.
    """
    notices = list(_unbounded(pattern.event, pattern)) if not pattern.has_window else []
    if not pattern.has_window and not has_trace_end and _waits(pattern.event):
        notices.append(
            Notice(
                "no-within",
                f"{_endless_traces(further_key) or 'the stream has no end of trace'} and the pattern no clause WITHIN, "
                "so partial matches are kept for ever; add WITHIN",
                first_position(pattern.event),
            )
        )
        if has_closing:
            notices.extend(_decided_by_closing(pattern))
    if pattern.where is not None:
        notices.extend(_of_one_step(pattern.where))
    notices.extend(_of_keys(pattern))
    return tuple(sorted(notices, key=lambda notice: (notice.position.line, notice.position.column)))


def awaited_types(pattern: Pattern) -> frozenset[str]:
    """Return the types of a pattern's trailing NOTs that have no deadline."""
    items = () if pattern.has_window else trailing_items(pattern.event)
    return frozenset(name for item in items if item.negated and _is_endless(item) for name in item.negated.types)


def _is_endless(item: Item) -> bool:
    return item.gap is None or item.gap.within_us is None


def _waits(node: Node) -> bool:
    """Check whether a partial match of a part may wait for the next event without a limit of time.

    A part of one step has no partial matches.
    """
    match node:
        case Atom():
            return False
        case Repeat():
            return node.max != 1 or _waits(node.of)
        case Disjunction():
            return any(map(_waits, node.parts))
        case Conjunction():
            return node.within_us is None
    if node.within_us is not None:
        return False
    first = next((place for place, item in enumerate(node.items) if item.of is not None), 0)
    later = [item for item in node.items[first + 1 :] if item.of is not None or item is node.items[-1]]
    return any(map(_is_endless, later)) or any(map(_waits, node.parts))


def _decided_by_closing(pattern: Pattern) -> Iterator[Notice]:
    for item in trailing_items(pattern.event):
        if _is_endless(item):
            yield Notice(
                "no-trace-end",
                "the stream has no end of trace, so an end event of the constraints decides this NOT, and nothing "
                "decides it in a trace that deviates before or has none; add WITHIN, or an end event or idle timeout "
                "to the stream",
                item.position,
            )


def _refuse_endless(word: str, position: Position, advice: str, further_key: str) -> None:
    reason = f"this stream's traces never do; add {advice}; or add an end event or idle timeout to the stream"
    if further_key:
        reason = f"{_endless_traces(further_key)}, also where the stream has end events; add {advice}"
    raise PatternRefused(
        "needs-end", f"{word} at the end of the pattern holds until the trace ends, and {reason}", position
    )


def _endless_traces(further_key: str) -> str:
    return further_key and f"traces of the further key {further_key} have no end"


def _unbounded(node: Node, pattern: Pattern) -> Iterator[Notice]:
    if not isinstance(node, Atom | Repeat) and node.within_us is not None:
        return
    if isinstance(node, Repeat) and node.max is None:
        mode = None if node.each is None else node.each.mode
        if mode == "any" or (mode is None and pattern.select == "all"):
            yield Notice(
                "unbounded-repetition",
                "every subset of the repeated events is a match, without bound in time; add WITHIN, EACH NEXT or "
                "SELECT NEXT",
                node.position,
            )
    for part in parts_of(node):
        yield from _unbounded(part, pattern)


def _of_one_step(where: Expression) -> Iterator[Notice]:
    for conjunct in where.operands if isinstance(where, Both) else (where,):
        attributes = list(attributes_of(conjunct))
        if len({attribute.of for attribute in attributes}) != 1:
            continue
        if any(call.name in AGGREGATES for call in calls_of(conjunct)):
            continue
        alias = attributes[0].of
        yield Notice(
            "where-of-one-step",
            f"{describe_expression(conjunct)} is about the step {alias} alone; in the brackets of {alias} it is tested "
            "earlier, and decides what can be taken there",
            attributes[0].position,
        )


def _of_keys(pattern: Pattern) -> Iterator[Notice]:
    """Yield a warning for each comparison of two correlation keys.

    All events of a match have the same key, so such a comparison is always true or never true.
    """
    conditions = [atom.condition for atom, _ in all_atoms_of(pattern.event)]
    for condition in (*conditions, pattern.where):
        for comparison in () if condition is None else subexpressions(condition):
            if not isinstance(comparison, Comparison):
                continue
            left, right = comparison.left, comparison.right
            if isinstance(left, Call) and isinstance(right, Call) and left.name == right.name == "key":
                truth = "always" if comparison.operator in ("=", "<=", ">=") else "never"
                yield Notice(
                    "constant-key",
                    f"{describe_expression(comparison)} is {truth} true, as all events of a match have the same "
                    "correlation key; to compare across keys, correlate by something wider (a further key of the "
                    "stream); write an attribute named key in back quotes: `key`",
                    left.position,
                )
