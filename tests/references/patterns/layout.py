"""Conversion of a skeleton to flat conditions (section 4.2): edges, and conditions that move out into a gap."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from nfa.syntax import Atom, Gap, Mode, Pattern
from tests.references.patterns.skeletons import AtomPart, Choice, Loop, Part, Place, Row, Shuffle, size_of

Numbers: TypeAlias = frozenset[int]

_NONE: Numbers = frozenset()
_PLAIN = Gap()


@dataclass(frozen=True, slots=True)
class Spot:
    """Position of a condition: the occurrences bound before it, and the iterations around it, outer ones first."""

    pre: Numbers = _NONE
    loops: tuple[tuple[Place, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A copy of a step, bound to one event or, in a partial match, the next candidate."""

    atom: Atom
    spot: Spot
    is_bound: bool = True


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The X of an edge: the occurrences before it; for an AND with nothing before it (4.2.3), their earliest event."""

    members: Numbers = _NONE
    is_earliest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Order and mode into one occurrence, and the edge's own limit."""

    behind: Neighbour
    into: int
    mode: Mode
    within_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The limit of an edge that leads into an AND."""

    behind: Neighbour
    ahead: Numbers
    within_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation:
    """A NOT between X and Y; leading without ``behind``, trailing without ``ahead``."""

    atom: Atom
    gap: Gap
    spot: Spot
    behind: Neighbour = Neighbour()
    ahead: Numbers = _NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """An UNTIL of one repetition, at its position; ``group`` are the occurrences of its iterations."""

    atom: Atom
    spot: Spot
    place: Place
    group: Numbers

    def is_around(self, spot: Spot) -> bool:
        """Whether a position is inside this instance of the repetition."""
        depth = len(self.spot.loops)
        return (
            spot.loops[:depth] == self.spot.loops
            and spot.loops[depth : depth + 1] != ()
            and (spot.loops[depth][0] == self.place)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """A GREEDY of one repetition with fewer than ``max`` iterations, with mode and limit of the next one's edge.

    Attributes:
        occurrence: The additional iteration that might have occurred.
        behind: The last iteration; without iterations the neighbour before.
        ahead: The occurrences that follow; empty for a trailing GREEDY.
    """

    occurrence: Occurrence
    behind: Neighbour
    mode: Mode
    within_us: int | None
    group: Numbers
    ahead: Numbers = _NONE


@dataclass(frozen=True, slots=True)
class Span:
    """The span of a part."""

    members: Numbers
    within_us: int


@dataclass(frozen=True, slots=True)
class Pending:
    """A gap whose end is not reached yet."""

    behind: Neighbour = Neighbour()
    gap: Gap = _PLAIN
    negations: tuple[Negation, ...] = ()
    greedies: tuple[Greedy, ...] = ()


@dataclass(slots=True)
class Layout:
    """The conditions of one skeleton; occurrences are numbered in the order of the text."""

    default_mode: Mode
    occurrences: list[Occurrence] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    negations: list[Negation] = field(default_factory=list)
    untils: list[Until] = field(default_factory=list)
    greedies: list[Greedy] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    @classmethod
    def of(cls, pattern: Pattern, skeleton: Part) -> Layout:
        """The conditions of a skeleton; conditions still pending after the last part are trailing."""
        layout = cls("any" if pattern.select == "all" else pattern.select)
        pending = layout._place(skeleton, Pending(), Spot())
        layout.negations += pending.negations
        layout.greedies += pending.greedies
        if pattern.within_us is not None:
            layout._span(0, pattern.within_us)
        return layout

    def _place(self, part: Part, pending: Pending, spot: Spot) -> Pending:
        match part:
            case AtomPart():
                return self._step(part, pending, spot)
            case Row():
                return self._row(part, pending, spot)
            case Loop():
                return self._loop(part, pending, spot)
            case Shuffle():
                return self._shuffle(part, pending, spot)
            case Choice():
                first = len(self.occurrences)
                after = self._place(part.part, pending, spot)
                self._span(first, part.within_us)
                return after

    def _step(self, part: AtomPart, pending: Pending, spot: Spot) -> Pending:
        number = len(self.occurrences)
        self.occurrences.append(Occurrence(part.atom, spot, part.is_bound))
        self._arrive(pending, frozenset({number}))
        if pending.behind.members:
            edge = Edge(
                behind=pending.behind, into=number, mode=self._mode(pending.gap), within_us=pending.gap.within_us
            )
            self.edges.append(edge)
        return Pending(Neighbour(frozenset({number})))

    def _row(self, part: Row, pending: Pending, spot: Spot) -> Pending:
        first = len(self.occurrences)
        is_first = True
        for entry in part.entries:
            here = replace(spot, pre=spot.pre | self._since(first))
            if entry.negated is not None:
                negation = Negation(atom=entry.negated, gap=entry.gap or _PLAIN, spot=here, behind=pending.behind)
                pending = replace(pending, negations=(*pending.negations, negation))
            elif entry.part is not None:
                if not is_first or entry.gap is not None:  # 4.2.2: the first part has the prefix of the whole
                    pending = replace(pending, gap=entry.gap or _PLAIN)
                pending = self._place(entry.part, pending, here)
                is_first = False
        self._span(first, part.within_us)
        return pending

    def _loop(self, part: Loop, pending: Pending, spot: Spot) -> Pending:
        first, repeat = len(self.occurrences), part.repeat
        each = repeat.each or _PLAIN
        for number, body in enumerate(part.rounds):
            if number:
                pending = replace(pending, gap=each)
            here = Spot(spot.pre | self._since(first), (*spot.loops, (part.place, number)))
            pending = self._place(body, pending, here)
        group = self._since(first)
        until = None if repeat.until is None else Until(atom=repeat.until, spot=spot, place=part.place, group=group)
        if until is not None:
            self.untils.append(until)
        if repeat.greedy and pending.behind.members and not (not group and pending.behind.is_earliest):
            pending = self._stay_greedy(part, pending, spot, group)
        return pending

    def _stay_greedy(self, part: Loop, pending: Pending, spot: Spot, group: Numbers) -> Pending:
        repeat, number = part.repeat, len(part.rounds)
        assert isinstance(repeat.of, Atom)
        if repeat.max is not None and number >= repeat.max:
            return pending
        gap = (repeat.each or _PLAIN) if number else pending.gap
        greedy = Greedy(
            occurrence=Occurrence(repeat.of, Spot(spot.pre | group, (*spot.loops, (part.place, number)))),
            behind=pending.behind,
            mode=self._mode(gap),
            within_us=gap.within_us,
            group=group,
        )
        return replace(pending, greedies=(*pending.greedies, greedy))

    def _shuffle(self, part: Shuffle, pending: Pending, spot: Spot) -> Pending:
        branches = [branch for branch in part.branches if size_of(branch)]
        if not branches:
            return pending
        first = len(self.occurrences)
        members = frozenset(range(first, first + sum(size_of(branch) for branch in branches)))
        self._arrive(pending, members)
        if pending.behind.members and pending.gap.within_us is not None:
            self.limits.append(Limit(behind=pending.behind, ahead=members, within_us=pending.gap.within_us))
        behind = pending.behind if pending.behind.members else Neighbour(members, is_earliest=True)
        inner = Pending(behind, replace(pending.gap, within_us=None))
        after = [self._place(branch, inner, spot) for branch in branches]
        self._span(first, part.within_us)
        outer = Neighbour(members)
        return Pending(
            outer,
            negations=tuple(replace(one, behind=outer) for branch in after for one in branch.negations),
            greedies=tuple(one for branch in after for one in branch.greedies),
        )

    def _arrive(self, pending: Pending, ahead: Numbers) -> None:
        self.negations += [replace(one, behind=pending.behind, ahead=ahead) for one in pending.negations]
        self.greedies += [replace(one, ahead=ahead) for one in pending.greedies]

    def _span(self, first: int, within_us: int | None) -> None:
        members = self._since(first)
        if within_us is not None and members:
            self.spans.append(Span(members, within_us))

    def _since(self, first: int) -> Numbers:
        return frozenset(range(first, len(self.occurrences)))

    def _mode(self, gap: Gap) -> Mode:
        return gap.mode or self.default_mode
