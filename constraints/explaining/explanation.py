"""Explains why an event terminated a partial match: form, chain of constraints, impossible atoms, and a sentence.

The forms are those of constraint-aware CEP, section 4.1, and two more: one for rules, one for a workflow's automaton.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from constraints.exact.outlook import ExactOutlook, find_workflow_clash
from constraints.model import Clause, ConstraintSet, End, Part, Prior, quoted
from constraints.reasoning.clash import Clash, find_clash
from constraints.reasoning.outlook import Outlook
from constraints.reasoning.rule_clash import find_rule_clash
from constraints.remainder import Remainder, remainder_of
from constraints.wording import listed, listed_atoms, listed_parts, listed_types, next_to_come, with_workflow
from nfa import OTHER, Atom, EventClass, MonitorState, PatternState, Query, Seen, describe_atom
from streams import Ties

Form: TypeAlias = Literal["p1", "p2", "p3", "p4", "p5", "end", "rule", "workflow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The explanation why a pattern state can no longer complete.

    Attributes:
        form: ``p1`` if an order constraint blocks the atom. ``p2`` if the atom is excluded. ``p3`` if a required event
            can no longer occur. ``p4`` if the remaining events cannot be ordered, or only with a forbidden event among
            them. ``p5`` if a clause over several types excludes the atom. ``end`` if the trace has ended. ``rule`` if a
            rule excludes the atom. ``workflow`` if the workflow's automaton excludes the atom.
        shown: The relevant symbols of the terminating event, sorted; empty if its type suffices as the reason.
        earlier: Other names that had to precede the event, sorted.
        constraints: The minimal chain of constraints that leads from the event to the atoms. If the workflow decides,
            only hand-written constraints that take part, usually none.
        atoms: The atoms that became impossible, either alone or only together. Empty if all atoms were bound and a
            forbidden event became certain.
        forbidden: Types that must not occur in the match, but now have to.
        allowed: If the workflow decides, the event types that may occur next, sorted.
    """

    form: Form
    event_type: str
    shown: tuple[str, ...] = ()
    earlier: tuple[str, ...]
    constraints: tuple[Part, ...]
    atoms: tuple[Atom, ...]
    forbidden: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    because: str

    @property
    def atom(self) -> Atom:
        """The first of ``atoms`` or, if there are none, an atom for the first forbidden type."""
        return self.atoms[0] if self.atoms else Atom(self.forbidden[:1], self.forbidden[0])

    @property
    def event_name(self) -> str:
        """The event's symbols if these are relevant, otherwise its type."""
        return "any other event" if self.event_type == OTHER else listed_types(self.shown or (self.event_type,))

    @property
    def key(self) -> str:
        """A key for counting. It is equal if form, constraints, atoms and forbidden types are equal."""
        needed = ", ".join([*map(describe_atom, self.atoms), *(f"NOT {quoted(name)}" for name in self.forbidden)])
        return f"{self.form} {'; '.join(map(str, self.constraints))} -> {needed}"

    @property
    def text(self) -> str:
        """The event and the reason as a sentence without a full stop."""
        return f"{self.event_name} ends it{self.circumstances}: {self.because}"

    @property
    def circumstances(self) -> str:
        """The earlier events that the explanation needs, in words; usually empty."""
        return f", after {listed_types(self.earlier)}" if self.earlier else ""


def explain_ending(
    constraint_set: ConstraintSet,
    query: Query,
    state: PatternState,
    before: MonitorState,
    after: MonitorState,
    event: EventClass,
) -> Explanation:
    """Explain why ``event``, which led from ``before`` to ``after``, terminated the partial matches at ``state``.

    The explanation is always about the state ``after``. In a trace under bit tables, the partial matches may have been
    impossible even before the event.

    Raises:
        ValueError: ``state`` can still complete after the event.
    """
    ties: Ties = "log" if after.settled is None else "simultaneous"
    exact, remainder = ExactOutlook.of(constraint_set, ties), remainder_of(query, state)
    if exact is None:
        explanation = explain_impossible(Outlook(constraint_set, ties), remainder, after, event)
    else:
        explanation = explain_impossible(exact.own, remainder, exact.own_state(after), event)
        clash = None if explanation is not None else find_workflow_clash(exact, after, remainder)
        explanation = explanation if clash is None else _of_workflow(exact, clash, after, event)
    if explanation is None:
        raise ValueError(f"{event.type!r} did not end {state}: {before} before, {after} after it")
    return explanation


def explain_impossible(
    outlook: Outlook, remainder: Remainder, after: MonitorState, event: EventClass
) -> Explanation | None:
    """Explain why ``remainder`` cannot complete in the state ``after``, to which ``event`` led.

    The result is None if it can complete.
    """
    explanation = explain_clash(outlook, remainder, after.seen, event, after.settled)
    if explanation is not None:
        return explanation
    broken = find_rule_clash(outlook, after, remainder)
    return None if broken is None else _of_rules(broken, event)


def explain_clash(
    outlook: Outlook, remainder: Remainder, seen: Seen, event: EventClass, settled: Seen | None = None
) -> Explanation | None:
    """Explain by order and occurrence constraints why ``remainder`` cannot complete.

    ``seen`` has the names of the trace, including those of ``event``. The result is None if these constraints allow the
    remainder. Rules are not considered.
    """
    clash = find_clash(outlook.constraint_set, seen, remainder, settled, reasoner=outlook.reasoner)
    if clash is None:
        return None
    names, form = outlook.names_of(event), _form(clash)
    return Explanation(
        form=form,
        event_type=event.type,
        shown=tuple(sorted(clash.events & names & outlook.constraint_set.symbols.keys())),
        earlier=tuple(sorted(clash.events - names)),
        constraints=clash.constraints,
        atoms=clash.remainder.atoms,
        forbidden=clash.remainder.forbidden,
        because=_forbidden_comes(clash) if clash.remainder.gaps else _SENTENCES[form](clash),
    )


def _of_rules(clash: Clash, event: EventClass) -> Explanation:
    parts, atoms, forbidden = clash.constraints, clash.remainder.atoms, clash.remainder.forbidden
    leave = "leaves" if len(parts) == 1 else "leave"
    nots = [f"NOT {quoted(name)}" for name in forbidden]
    return Explanation(
        form="rule",
        event_type=event.type,
        earlier=(),
        constraints=parts,
        atoms=atoms,
        forbidden=forbidden,
        because=f"{listed_parts(parts)} {leave} no place for {listed([*map(describe_atom, atoms), *nots])}",
    )


def _of_workflow(outlook: ExactOutlook, clash: Clash, after: MonitorState, event: EventClass) -> Explanation:
    atoms, forbidden = clash.remainder.atoms, clash.remainder.forbidden
    came = "that" if event.type == OTHER else quoted(event.type)
    again = "other " if len(atoms) == 1 and atoms[0].type == event.type else ""
    exclusion = f"no {again}{listed_atoms(atoms)}" if len(atoms) == 1 else f"not all of {listed_atoms(atoms)}"
    if forbidden:
        nots = listed([f"NOT {quoted(name)}" for name in forbidden])
        exclusion = f"{exclusion} with {nots}" if atoms else f"no trace with {nots}"
    subject = with_workflow(outlook.process.workflow, clash.constraints)
    allowed = outlook.allowed(after)
    return Explanation(
        form="workflow",
        event_type=event.type,
        earlier=(),
        constraints=clash.constraints,
        atoms=atoms,
        forbidden=forbidden,
        allowed=allowed,
        because=f"{subject} {exclusion} after {came}; {next_to_come(allowed)}",
    )


def _form(clash: Clash) -> Form:
    parts = clash.constraints
    if any(isinstance(part, End) for part in parts) and len(parts) == 1:
        return "end"
    if any(isinstance(part, Clause) and part.is_long for part in parts):
        return "p5"
    match clash.reason:
        case "occurrence":
            return "p2"
        case "blocked":
            return "p1" if len(parts) == 1 else "p3"
        case _:
            return "p4"


def _can_no_longer_come(clash: Clash) -> str:
    atoms, parts = clash.remainder.atoms, clash.constraints
    mean = "means" if len(parts) == 1 else "mean"
    amount = {1: "", 2: "both "}.get(len(atoms), "all ")
    return f"{listed_parts(parts)} {mean} that {listed_atoms(atoms)} can no longer {amount}come"


def _blocked(clash: Clash) -> str:
    part = clash.constraints[0]
    if isinstance(part, Prior) and part.earlier == part.later:
        atoms = listed_atoms(clash.remainder.atoms)
        return f"{part} allows only one {quoted(part.later)}, so {atoms} can no longer come"
    return _can_no_longer_come(clash)


def _last_chance_passed(clash: Clash) -> str:
    *chain, last = clash.constraints
    missing = quoted(last.names[0])
    return (
        f"{listed_atoms(clash.remainder.atoms)} needs {missing} by {listed_parts(chain)}, "
        f"and by {last} {missing} can no longer come"
    )


def _out_of_order(clash: Clash) -> str:
    atoms, parts = clash.remainder.atoms, clash.constraints
    leave = "leaves" if len(parts) == 1 else "leave"
    way = "place for" if len(atoms) == 1 else "order for"
    return f"{listed_parts(parts)} {leave} no {way} {listed_atoms(atoms)}"


def _forbidden_comes(clash: Clash) -> str:
    atoms, parts = clash.remainder.atoms, clash.constraints
    forbidden = listed_types(clash.remainder.forbidden)
    if not parts:
        return f"{forbidden} came, which NOT {forbidden} forbids"
    mean = "means" if len(parts) == 1 else "mean"
    place = "" if not atoms else f" where NOT {forbidden} forbids it, next to {listed_atoms(atoms)}"
    return f"{listed_parts(parts)} {mean} that {forbidden} must still come{place}"


def _trace_is_over(clash: Clash) -> str:
    atoms = clash.remainder.atoms
    if any(atom.type in clash.events for atom in atoms):
        return f"the trace is over, so no other {listed_atoms(atoms)} can come"
    return f"the trace is over, and {listed_atoms(atoms)} has not come"


_SENTENCES: Mapping[Form, Callable[[Clash], str]] = {
    "p1": _blocked,
    "p2": _can_no_longer_come,
    "p3": _last_chance_passed,
    "p4": _out_of_order,
    "p5": _can_no_longer_come,
    "end": _trace_is_over,
}
