"""Why an event ended a partial match: form, constraint chain, the atoms it made impossible, and a sentence.

The forms are those of constraint-aware CEP, section 4.1. Explanations are computed when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from constraints.clash import Clash, find_clash
from constraints.model import Clause, ConstraintSet, End, Part, Prior, quoted
from constraints.reference import alive
from constraints.remainder import remainder_of
from constraints.wording import listed_atoms, listed_parts, listed_types
from nfa import Atom, PatternState, Query, Seen

Form: TypeAlias = Literal["p1", "p2", "p3", "p4", "p5", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why nothing can complete a pattern state any more.

    Attributes:
        form: ``p1`` blocked by an order constraint, ``p2`` excluded, ``p3`` something it needs can no longer come,
            ``p4`` what remains cannot be put in a row, ``p5`` a clause over several types, ``end`` the trace is over.
        event_type: The event that ended it.
        earlier: Other types that had to be seen before, sorted.
        constraints: The minimal chain that leads from the event to the atoms.
        atoms: The atoms that it made impossible: one, or several that are impossible together only.
        because: The reason as a sentence without full stop.
    """

    form: Form
    event_type: str
    earlier: tuple[str, ...]
    constraints: tuple[Part, ...]
    atoms: tuple[Atom, ...]
    because: str

    @property
    def atom(self) -> Atom:
        """The first of ``atoms``."""
        return self.atoms[0]

    @property
    def text(self) -> str:
        """Event and reason as a sentence without full stop."""
        return f"{quoted(self.event_type)} ends it{self.circumstances}: {self.because}"

    @property
    def circumstances(self) -> str:
        """What had to come earlier, in words; mostly nothing."""
        return f", after {listed_types(self.earlier)}" if self.earlier else ""


def explain_ending(
    constraint_set: ConstraintSet,
    query: Query,
    state: PatternState,
    before: Seen,
    after: Seen,
    event_type: str,
) -> Explanation:
    """Why ``event_type``, which took the monitor from ``before`` to ``after``, ended the partial matches at ``state``.

    Raises:
        ValueError: ``state`` can still complete after the event, or could not before it.
    """
    remainder = remainder_of(query, state)
    clash = find_clash(constraint_set, after, remainder)
    if clash is None or not alive(constraint_set, before, remainder):
        raise ValueError(f"{event_type!r} did not end {state}: seen {sorted(before)} before, {sorted(after)} after it")
    form = _form(clash)
    return Explanation(
        form=form,
        event_type=event_type,
        earlier=tuple(sorted(clash.events - {event_type})),
        constraints=clash.constraints,
        atoms=clash.remainder.atoms,
        because=_SENTENCES[form](clash),
    )


def _form(clash: Clash) -> Form:
    parts = clash.constraints
    if any(isinstance(part, End) for part in parts) and len(parts) == 1:
        return "end"
    if any(isinstance(part, Clause) and part.is_long for part in parts):
        return "p5"
    match clash.verdict.reason:
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
