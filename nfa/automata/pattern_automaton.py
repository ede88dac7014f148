"""The automaton of a pattern: its states are progress values, and each transition binds an event.

A *slot* is a pending gap, identified by the atom to bind and the node of the gap. Between two events of a match a slot
is open until an event that the gap does not allow closes it. Binding an event reopens the slots of the gaps after the
event, but not the slots of parallel branches. All effects on slots are computed in advance. So at run time a partial
match needs only a few words of bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nfa.automata.progress import BindingStep, Edge, Greed, Negation, Outline, Progress
from nfa.conditions.over_events import over_events
from nfa.conditions.residuals import split_condition
from nfa.errors import PatternRefused
from nfa.kernels.shared.tables import ALIAS_MASK
from nfa.syntax import Atom, Conjunction, Disjunction, Node, Pattern, Repeat, atoms_of, parts_of
from nfa.syntax import Sequence as SequenceNode

MAX_STATES = 4_096
MAX_BITS = 63  # a run has one word of bits each for atoms, slots, repetitions and spans

_ROOT = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A transition between two states, which binds one event as ``step`` describes.

    Attributes:
        slot: Slot of the gap before the event, or -1 if no event is bound before.
        resets: Slots of the gaps that start at the event.
        leaves: Slots of the GREEDY repetitions that the transition ends or skips.
    """

    source: int
    target: int
    atom: int
    slot: int
    step: BindingStep
    resets: frozenset[int]
    leaves: frozenset[int]

    @property
    def edge(self) -> Edge:
        return self.step.edge


@dataclass(frozen=True, slots=True)
class Finish:
    """One alternative of the trailing conditions of a match.

    No later event may match a NOT of ``negations``, or extend a GREEDY repetition whose slot is in ``slots``.
    """

    negations: tuple[Negation, ...]
    slots: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternAutomaton:
    """The automaton of a pattern, which both engines run.

    No event is bound in state 0. Transitions are sorted by source, then in the order of the text.

    Attributes:
        accepting: For each state, whether a match may be complete.
        finishes: For each state, the alternative trailing conditions of a match.
        under_way: For each state, the repetitions with UNTIL that may continue.
    """

    pattern: Pattern
    outline: Outline
    states: tuple[Progress, ...]
    accepting: tuple[bool, ...]
    finishes: tuple[tuple[Finish, ...], ...]
    under_way: tuple[frozenset[int], ...]
    transitions: tuple[Transition, ...]
    n_slots: int

    @property
    def atoms(self) -> Sequence[Atom]:
        return self.outline.atoms

    @property
    def aliases(self) -> tuple[str, ...]:
        """Distinct aliases of the positive atoms, in the order of the text."""
        return tuple(dict.fromkeys(atom.alias for atom in self.atoms))

    @property
    def goes_on(self) -> tuple[bool, ...]:
        """For each state, whether it has an outgoing transition."""
        sources = {transition.source for transition in self.transitions}
        return tuple(state in sources for state in range(len(self.states)))

    @property
    def depths(self) -> tuple[int, ...]:
        """For each state, the smallest number of events that a partial match binds to reach the state."""
        depths = [0] * len(self.states)
        for transition in self.transitions:  # sources are in breadth-first order
            if transition.target and not depths[transition.target]:
                depths[transition.target] = depths[transition.source] + 1
        return tuple(depths)

    @property
    def is_trailing(self) -> bool:
        """Whether a match can have trailing conditions, which are decided only after its last event."""
        return any(finish.negations or finish.slots for finishes in self.finishes for finish in finishes)

    @property
    def may_repeat(self) -> bool:
        """Whether two different paths through the automaton can bind the same events to the same aliases."""
        return _may_repeat(self.pattern.event, is_repeated=False)


def build_automaton(pattern: Pattern, *, max_states: int = MAX_STATES) -> PatternAutomaton:
    """Build the automaton of a checked pattern.

    A pattern with too many states, steps, gaps, repetitions or spans is refused.
    """
    pattern = over_events(pattern)
    outline = Outline(pattern)
    states: list[Progress] = [None]
    numbers: dict[Progress, int] = {None: 0}
    rows: list[tuple[int, int, BindingStep]] = []
    for source, progress in enumerate(states):
        for step in outline.steps(_ROOT, progress, Edge(mode=outline.default)):
            if step.after not in numbers:
                numbers[step.after] = len(states)
                states.append(step.after)
            rows.append((source, numbers[step.after], step))
        if len(states) > max_states:
            advice = f"its alternatives, branches and repetitions make more than {max_states} states; split the pattern"
            raise PatternRefused("too-large", advice, next(atoms_of(pattern.event)).position)
    slots = _slots(rows)
    n_slots = max(slots, default=-1) + 1
    _check_bits(pattern, outline, n_slots)
    greedy = {
        (source, step.greedy): slot
        for (source, _, step), slot in zip(rows, slots, strict=True)
        if step.greedy is not None and slot >= 0
    }
    accepting = tuple(progress is not None and outline.is_final(_ROOT, progress) for progress in states)
    return PatternAutomaton(
        pattern=pattern,
        outline=outline,
        states=tuple(states),
        accepting=accepting,
        finishes=tuple(
            _finishes(outline, state, progress, greedy) if accepts else ()
            for state, (progress, accepts) in enumerate(zip(states, accepting, strict=True))
        ),
        under_way=tuple(frozenset(outline.under_way(_ROOT, progress)) for progress in states),
        transitions=_transitions(outline, rows, slots, greedy),
        n_slots=n_slots,
    )


def _check_bits(pattern: Pattern, outline: Outline, n_slots: int) -> None:
    counts = {
        "steps": len(outline.atoms) + len(outline.negated),
        "gaps": n_slots,
        "repetitions": len(outline.repeats),
        "spans": len(outline.spans),
    }
    for name, count in counts.items():
        if count > MAX_BITS:
            position = next(atoms_of(pattern.event)).position
            raise PatternRefused("too-large", f"it has {count} {name}; at most {MAX_BITS}", position)


def _slots(rows: Sequence[tuple[int, int, BindingStep]]) -> list[int]:
    """Return, for each row, the slot of the gap before its event, or -1 if no event is bound before.

    Rows that bind the same atom after the same gap share a slot, except rows of one source with different NOTs.
    """
    variants: dict[tuple[int, int, int], list[tuple[Negation, ...]]] = {}
    numbers: dict[tuple[int, int, int], int] = {}
    slots = []
    for source, _, step in rows:
        place = step.edge.place
        if place is None:
            slots.append(-1)
            continue
        gap_variants = variants.setdefault((source, step.atom, place), [])
        if step.edge.negations not in gap_variants:
            gap_variants.append(step.edge.negations)
        variant = gap_variants.index(step.edge.negations)
        slots.append(numbers.setdefault((step.atom, place, variant), len(numbers)))
    return slots


def _transitions(
    outline: Outline,
    rows: Sequence[tuple[int, int, BindingStep]],
    slots: Sequence[int],
    greedy: Mapping[tuple[int, Greed], int],
) -> tuple[Transition, ...]:
    pending: dict[int, list[tuple[BindingStep, int]]] = {}
    for (source, _, step), slot in zip(rows, slots, strict=True):
        pending.setdefault(source, []).append((step, slot))
    transitions = []
    for (source, target, step), slot in zip(rows, slots, strict=True):
        before = {pending_slot for _, pending_slot in pending[source]}
        resets = frozenset(
            later
            for coming, later in pending.get(target, ())
            if later not in before or not _is_parallel(outline, step, coming)
        )
        transitions.append(
            Transition(
                source=source,
                target=target,
                atom=step.atom,
                slot=slot,
                step=step,
                resets=resets - {-1},
                leaves=frozenset(greedy[source, greed] for greed in step.leaves if (source, greed) in greedy),
            )
        )
    return tuple(transitions)


def _finishes(
    outline: Outline, state: int, progress: Progress, greedy: Mapping[tuple[int, Greed], int]
) -> tuple[Finish, ...]:
    finishes = dict.fromkeys(
        Finish(
            alternative.negations,
            frozenset(greedy[state, greed] for greed in alternative.greeds if (state, greed) in greedy),
        )
        for alternative in outline.exits(_ROOT, progress)
    )
    free = Finish((), frozenset())
    return (free,) if free in finishes else tuple(finishes)


def _is_parallel(outline: Outline, bound: BindingStep, later: BindingStep) -> bool:
    """Return whether two steps bind events in different branches of an AND, in the same iteration."""
    bound_path, later_path = outline.ancestors[bound.atom], outline.ancestors[later.atom]
    common = [
        bound_node for bound_node, later_node in zip(bound_path, later_path, strict=False) if bound_node == later_node
    ]
    if not isinstance(outline.nodes[common[-1]], Conjunction):
        return False
    common_repeats = {outline.repeat_nodes[node] for node in common if node in outline.repeat_nodes}
    return not common_repeats & later.begins


def _may_repeat(node: Node, *, is_repeated: bool) -> bool:
    if isinstance(node, Disjunction) or (isinstance(node, Repeat) and is_repeated):
        return True
    repeated = is_repeated or (isinstance(node, Repeat) and node.max != 1)
    return any(_may_repeat(part, is_repeated=repeated) for part in parts_of(node))


def is_shareable(automaton: PatternAutomaton) -> bool:
    """Return whether the shared-node engine can run the pattern of an automaton.

    Partial matches of such a pattern need no memory of their own. Either all gaps are ANY, or the pattern is a plain
    sequence of atoms under NEXT. Each condition reads a single event. The number of aliases is limited. The pattern has
    no gap limits, NOT, spans, UNTIL, GREEDY, WITHIN in business time, after-match rule, LIMIT or timeouts.
    """
    pattern = automaton.pattern
    if pattern.where is not None or any(split_condition(atom)[1] is not None for atom in automaton.atoms):
        return False
    if pattern.within_business is not None or len(automaton.aliases) > ALIAS_MASK + 1:
        return False
    if pattern.after.rule != "none" or pattern.limit is not None or pattern.timeouts or automaton.outline.spans:
        return False
    if any(repeat.until is not None or repeat.greedy for repeat in automaton.outline.repeats):
        return False
    if automaton.outline.negated:
        return False
    edges = [transition.edge for transition in automaton.transitions if transition.slot >= 0]
    if any(edge.limit_us is not None for edge in edges):
        return False
    return all(edge.mode == "any" for edge in edges) or is_plain_next(pattern)


def is_plain_next(pattern: Pattern) -> bool:
    """Return whether a pattern is a sequence of atoms whose gaps are all NEXT."""
    event = pattern.event
    if not isinstance(event, SequenceNode) or event.within_us is not None:
        return False
    if not all(isinstance(item.of, Atom) for item in event.items):
        return False
    default = "next" if pattern.select == "next" else None
    return all((item.gap.mode if item.gap and item.gap.mode else default) == "next" for item in event.items[1:])
