"""Progress of a match through a pattern's tree, and the events that can be bound next.

The *progress* of a node says how far its part of the pattern is matched. It is ``None`` while no event below the node
is bound. Otherwise it is

- ``True`` for an atom,
- ``(item, progress)`` for a sequence, where earlier items than the current ``item`` are finished or skipped,
- ``(alternative, progress)`` for an OR,
- ``(entry, progresses)`` for an AND: the edge by which the AND was entered, and the progress of each branch,
- ``(iterations, progress, turn)`` for a repetition. ``iterations`` is the number of finished iterations, counted only
  as far as the number makes a difference. ``progress`` belongs to the current iteration. ``turn`` is a bit that
  alternates if the gaps before two iterations may be pending at the same time. Otherwise it is 0.

So an AND is the shuffle of its branches, and a repetition is a loop. Edges (the gap conditions between neighbours)
follow section 4.2 of ``docs/semantics.md``. The mode and limit before a part apply to its first bound item. A NOT at an
end of a part applies to the gap at this end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Any, TypeAlias

from nfa.syntax import Atom, Conjunction, Disjunction, Gap, Item, Mode, Node, Pattern, Repeat, Sequence, parts_of

Progress: TypeAlias = Any
Greed: TypeAlias = tuple[int, bool]  # number of a GREEDY repetition, and whether it already has an element


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation:
    """A NOT in one gap of a pattern, which forbids events for a time.

    The time starts with the gap. It lasts for ``within_us``, or for the whole gap if ``within_us`` is None. A strict
    NOT forbids only the event directly after the start of the gap, and only within this time.
    """

    number: int
    is_strict: bool = False
    within_us: int | None = None


@dataclass(frozen=True, slots=True)
class Exit:
    """Conditions on the gap after a part of a pattern.

    Attributes:
        negations: The NOTs after the last bound step of the part, in the order of the text.
        greeds: The GREEDY repetitions that must not be able to bind another element.
    """

    negations: tuple[Negation, ...] = ()
    greeds: frozenset[Greed] = frozenset()

    def plus(self, other: Exit) -> Exit:
        return Exit((*self.negations, *other.negations), self.greeds | other.greeds)

    def is_less(self, other: Exit) -> bool:
        """Return whether the conditions of this exit are a proper subset of the conditions of another exit."""
        return self != other and set(self.negations) <= set(other.negations) and self.greeds <= other.greeds


_FREE: tuple[Exit, ...] = (Exit(),)
NOT_BEGUN: tuple[int, Progress] = (-1, None)  # (place, progress) before the first part


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The gap before a bound event.

    Attributes:
        place: Number of the pattern's node that has the gap, or None if no event is bound before.
        within_us: Maximum time from the previous event to this event, or None without a limit.
        outer_us: If the event starts an AND, the limit of the gap before it, in addition to ``within_us``.
        negations: NOTs in force. If no event is bound before, these are leading NOTs.
        is_measured: Whether the gap starts at the first event of a leading AND. Such a gap imposes no order.
    """

    place: int | None = None
    mode: Mode = "any"
    within_us: int | None = None
    outer_us: int | None = None
    negations: tuple[Negation, ...] = ()
    is_measured: bool = False

    @property
    def limit_us(self) -> int | None:
        return min((limit for limit in (self.within_us, self.outer_us) if limit is not None), default=None)

    def behind(self, part_exit: Exit) -> Edge:
        """Return this edge with the NOTs of ``part_exit``, the exit of the part before the gap, added."""
        return replace(self, negations=self.negations + part_exit.negations) if part_exit.negations else self


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingStep:
    """A possible binding of one more event.

    Attributes:
        after: The progress after the event is bound.
        begins: Repetitions in which the event starts an iteration.
        goes_on: Repetitions with UNTIL that had started before the event.
        within: Repetitions with UNTIL that contain the event.
        opens_spans: Parts with a span that the event starts.
        in_spans: Parts with a span that started before the event.
        greedy: The GREEDY repetition (``Greed``) in which the event is a new element, or None.
        leaves: GREEDY repetitions that the event ends or skips.
    """

    atom: int
    after: Progress
    edge: Edge
    begins: frozenset[int] = frozenset()
    goes_on: frozenset[int] = frozenset()
    within: frozenset[int] = frozenset()
    opens_spans: frozenset[int] = frozenset()
    in_spans: frozenset[int] = frozenset()
    greedy: Greed | None = None
    leaves: frozenset[Greed] = frozenset()


class Outline:
    """A pattern's tree with numbers for nodes, positive atoms, negated atoms, repetitions and spans, in text order."""

    def __init__(self, pattern: Pattern) -> None:
        self.root = pattern.event
        self.default: Mode = {"all": "any", "next": "next", "strict": "strict"}[pattern.select]  # type: ignore[assignment]
        self.atoms: list[Atom] = []
        self.negated: list[Atom] = []
        self.repeats: list[Repeat] = []
        self.spans: list[Node] = []
        self.ancestors: list[tuple[int, ...]] = []  # for each positive atom, node numbers from the root down
        self.negated_ancestors: list[tuple[int, ...]] = []
        self.node_ancestors: list[tuple[int, ...]] = []  # for each node, the numbers from the root down to the node
        self.nodes: list[Node] = []
        self.repeat_nodes: dict[int, int] = {}  # node number to repetition number
        self.children: list[list[int]] = []
        self.atom_numbers: dict[int, int] = {}
        self._negation_numbers: dict[tuple[int, int], int] = {}
        self._span_numbers: dict[int, int] = {}
        self._add(pattern.event, ())

    def _add(self, node: Node, above: tuple[int, ...]) -> int:
        number = len(self.nodes)
        self.nodes.append(node)
        self.children.append([])
        self.node_ancestors.append((*above, number))
        if isinstance(node, Atom):
            self.atom_numbers[number] = len(self.atoms)
            self.atoms.append(node)
            self.ancestors.append((*above, number))
            return number
        if isinstance(node, Repeat):
            self.repeat_nodes[number] = len(self.repeats)
            self.repeats.append(node)
        elif node.within_us is not None:
            self._span_numbers[number] = len(self.spans)
            self.spans.append(node)
        if isinstance(node, Sequence):
            for place, item in enumerate(node.items):
                if item.negated is not None:
                    self._negation_numbers[number, place] = len(self.negated)
                    self.negated.append(item.negated)
                    self.negated_ancestors.append((*above, number))
                    self.children[number].append(-1)
                elif item.of is not None:
                    self.children[number].append(self._add(item.of, (*above, number)))
        else:
            for part in parts_of(node):
                self.children[number].append(self._add(part, (*above, number)))
        return number

    def is_final(self, number: int, progress: Progress) -> bool:
        """Return whether a part may end at ``progress``.

        If ``progress`` is None, return whether the part may be omitted.
        """
        node, children = self.nodes[number], self.children[number]
        match node:
            case Atom():
                return progress is not None
            case Repeat():
                if progress is None:
                    return node.min == 0
                return progress[0] + 1 >= node.min and self.is_final(children[0], progress[1])
            case Sequence():
                first, inner = NOT_BEGUN if progress is None else progress
                if first >= 0 and not self.is_final(children[first], inner):
                    return False
                return all(child < 0 or self.is_final(child, None) for child in children[first + 1 :])
            case Conjunction():
                inners = [None] * len(children) if progress is None else progress[1]
                return all(self.is_final(child, inner) for child, inner in zip(children, inners, strict=True))
            case Disjunction():
                if progress is None:
                    return any(self.is_final(child, None) for child in children)
                return self.is_final(children[progress[0]], progress[1])

    def exits(self, number: int, progress: Progress) -> tuple[Exit, ...]:
        """Return the alternative conditions on the gap after a part of the pattern. One alternative must hold.

        The part ends at ``progress``. If ``progress`` is None, the part is omitted.
        """
        node, children = self.nodes[number], self.children[number]
        match node:
            case Atom():
                return _FREE
            case Repeat():
                inner = _FREE if progress is None else self.exits(children[0], progress[1])
                greeds = {(self.repeat_nodes[number], progress is not None)} if node.greedy else set()
                return _combined([inner, (Exit(greeds=frozenset(greeds)),)])
            case Sequence():
                first, place = (
                    (_FREE, -1) if progress is None else (self.exits(children[progress[0]], progress[1]), progress[0])
                )
                skipped_exits = [
                    self._item_exits(number, node, later_place) for later_place in range(place + 1, len(children))
                ]
                return _combined([first, *skipped_exits])
            case Conjunction():
                inners = [None] * len(children) if progress is None else progress[1]
                return _combined([self.exits(child, inner) for child, inner in zip(children, inners, strict=True)])
            case Disjunction() if progress is None:
                empty = [child for child in children if self.is_final(child, None)]
                return _least([alternative for child in empty for alternative in self.exits(child, None)])
            case Disjunction():
                return self.exits(children[progress[0]], progress[1])

    def _item_exits(self, number: int, node: Sequence, place: int) -> tuple[Exit, ...]:
        """Return the exits of a sequence's item that binds no event: a NOT, or a part that is skipped."""
        child = self.children[number][place]
        if child < 0:
            return (Exit((self._negation(number, place, node.items[place]),)),)
        return self.exits(child, None)

    def steps(self, number: int, progress: Progress, entry: Edge) -> Iterator[BindingStep]:
        """Yield every way to bind one more event to an atom below a node.

        ``progress`` is the node's progress so far. ``entry`` is the gap before the node's first event.
        """
        for step in self._inner_steps(number, progress, entry):
            span = self._span_numbers.get(number)
            if span is None:
                yield step
            elif progress is None:
                yield replace(step, opens_spans=step.opens_spans | {span})
            else:
                yield replace(step, in_spans=step.in_spans | {span})

    def _inner_steps(self, number: int, progress: Progress, entry: Edge) -> Iterator[BindingStep]:
        node = self.nodes[number]
        match node:
            case Atom():
                if progress is None:
                    yield BindingStep(atom=self.atom_numbers[number], after=True, edge=entry)
            case Sequence():
                yield from self._sequence_steps(number, node, progress, entry)
            case Conjunction():
                yield from self._conjunction_steps(number, progress, entry)
            case Disjunction():
                for place, child in enumerate(self.children[number]):
                    if progress is None or progress[0] == place:
                        for step in self.steps(child, None if progress is None else progress[1], entry):
                            yield replace(step, after=(place, step.after))
            case Repeat():
                yield from self._repeat_steps(number, node, progress, entry)

    def _sequence_steps(self, number: int, node: Sequence, progress: Progress, entry: Edge) -> Iterator[BindingStep]:
        children = self.children[number]
        exits, first, is_own = _FREE, 0, True
        if progress is not None:
            place, inner = progress
            for step in self.steps(children[place], inner, entry):
                yield replace(step, after=(place, step.after))
            if not self.is_final(children[place], inner):
                return
            exits, first, is_own = self.exits(children[place], inner), place + 1, False
            entry = Edge(place=number)
        for place in range(first, len(children)):
            item = node.items[place]
            if children[place] >= 0:
                edge = entry if is_own else self._with_gap(entry, item.gap)
                for leaving in exits:
                    for step in self.steps(children[place], None, edge.behind(leaving)):
                        yield replace(step, after=(place, step.after), leaves=step.leaves | leaving.greeds)
                if not self.is_final(children[place], None):
                    return
                is_own = False
            exits = _combined([exits, self._item_exits(number, node, place)])

    def _conjunction_steps(self, number: int, progress: Progress, entry: Edge) -> Iterator[BindingStep]:
        children = self.children[number]
        if progress is None:
            inners: tuple[Progress, ...] = (None,) * len(children)
            entry = replace(entry, within_us=None, outer_us=entry.limit_us)
            later_edge = replace(entry, outer_us=None, negations=())
            if entry.place is None:
                later_edge = replace(later_edge, place=number, is_measured=True)
        else:
            later_edge, inners = progress
            entry = later_edge
        for place, child in enumerate(children):
            for step in self.steps(child, inners[place], entry):
                yield replace(step, after=(later_edge, (*inners[:place], step.after, *inners[place + 1 :])))

    def _repeat_steps(self, number: int, node: Repeat, progress: Progress, entry: Edge) -> Iterator[BindingStep]:
        child, repeat = self.children[number][0], self.repeat_nodes[number]
        mark = frozenset({repeat})
        until = mark if node.until is not None else frozenset()
        if progress is None:
            has_neighbour = entry.place is not None and not entry.is_measured
            for step in self.steps(child, None, entry):
                yield replace(
                    step,
                    after=(0, step.after, 0),
                    begins=step.begins | mark,
                    within=step.within | until,
                    greedy=(repeat, False) if node.greedy and has_neighbour else step.greedy,
                )
            return
        finished, inner, turn = progress
        for step in self.steps(child, inner, entry):
            yield replace(
                step, after=(finished, step.after, turn), within=step.within | until, goes_on=step.goes_on | until
            )
        if not self.is_final(child, inner) or (node.max is not None and finished + 1 >= node.max):
            return
        counted = finished + 1 if node.max is not None else min(finished + 1, max(node.min - 1, 0))
        turn = 1 - turn if self._is_overlapping(child) else 0
        edge = self._with_gap(Edge(place=number + turn * len(self.nodes)), node.each)
        for leaving in self.exits(child, inner):
            for step in self.steps(child, None, edge.behind(leaving)):
                yield replace(
                    step,
                    after=(counted, step.after, turn),
                    begins=step.begins | mark,
                    within=step.within | until,
                    goes_on=step.goes_on | until,
                    greedy=(repeat, True) if node.greedy else step.greedy,
                    leaves=step.leaves | leaving.greeds,
                )

    def _is_overlapping(self, number: int) -> bool:
        """Return whether a part contains an AND with an optional branch.

        Such a branch might start after the part could end.
        """
        node, children = self.nodes[number], [child for child in self.children[number] if child >= 0]
        if isinstance(node, Conjunction) and any(self.is_final(child, None) for child in children):
            return True
        return any(self._is_overlapping(child) for child in children)

    def under_way(self, number: int, progress: Progress) -> Iterator[int]:
        """Yield the repetitions with UNTIL below a node that have started and may still continue."""
        if progress is None:
            return
        node, children = self.nodes[number], self.children[number]
        match node:
            case Atom():
                return
            case Repeat():
                if node.until is not None:
                    yield self.repeat_nodes[number]
                yield from self.under_way(children[0], progress[1])
            case Conjunction():
                for child, inner in zip(children, progress[1], strict=True):
                    yield from self.under_way(child, inner)
            case Sequence() | Disjunction():
                yield from self.under_way(children[progress[0]], progress[1])

    def _with_gap(self, edge: Edge, gap: Gap | None) -> Edge:
        if gap is None:
            return replace(edge, mode=self.default, within_us=None)
        return replace(edge, mode=gap.mode or self.default, within_us=gap.within_us)

    def _negation(self, number: int, place: int, item: Item) -> Negation:
        gap = item.gap or Gap()
        return Negation(
            number=self._negation_numbers[number, place],
            is_strict=gap.mode == "strict",
            within_us=gap.within_us,
        )


def _combined(parts: Iterable[Iterable[Exit]]) -> tuple[Exit, ...]:
    return _least([reduce(Exit.plus, combination, Exit()) for combination in product(*parts)])


def _least(exits: Iterable[Exit]) -> tuple[Exit, ...]:
    distinct_exits = tuple(dict.fromkeys(exits))
    return tuple(
        candidate
        for candidate in distinct_exits
        if not any(other_exit.is_less(candidate) for other_exit in distinct_exits)
    )
