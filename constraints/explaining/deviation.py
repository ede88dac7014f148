"""Explains why a trace deviates at an event: kind, constraints, and a sentence (constraint-aware CEP, section 4.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from constraints.exact.outlook import ExactOutlook, find_workflow_clash
from constraints.model import ConstraintSet, End, Part, Prior
from constraints.reasoning.clash import Clash, find_clash
from constraints.reasoning.outlook import Outlook
from constraints.reasoning.rule_clash import find_rule_clash
from constraints.remainder import NOTHING
from constraints.wording import listed_parts, listed_types, next_to_come
from nfa import EventClass, MonitorState
from streams import Ties

DeviationKind: TypeAlias = Literal[
    "order", "occurrence", "obligation", "cycle", "rule", "workflow", "unknown_type", "after_end"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationReason:
    """The reason why a trace deviates at an event.

    Attributes:
        kind: ``order`` if the event came too late. ``occurrence`` if the names seen, and the names that they require,
            exclude each other. ``obligation`` if a required name can no longer occur. ``cycle`` if the required names
            cannot be ordered. ``rule`` if a rule can no longer be satisfied. ``workflow`` if the workflow has no such
            trace. ``unknown_type`` if the process has no such event. ``after_end`` if an end event or the workflow had
            already ended the trace.
        constraints: A minimal set of broken constraints, in reading order. Empty for an unknown type. If the workflow
            decides, only hand-written constraints are listed.
        allowed: The workflow's event types that could have occurred instead, sorted. Empty if the workflow did not
            decide.
    """

    kind: DeviationKind
    constraints: tuple[Part, ...]
    allowed: tuple[str, ...] = ()
    text: str

    @property
    def key(self) -> str:
        """A key for counting, equal for deviations of the same kind by the same constraints."""
        return " ".join([self.kind, "; ".join(map(str, self.constraints))]).strip()


def explain_deviation(
    constraint_set: ConstraintSet, before: MonitorState, event: EventClass, ties: Ties = "log"
) -> DeviationReason:
    """Explain why a trace deviates at an event.

    Raises:
        ValueError: The trace does not deviate.
    """
    exact = ExactOutlook.of(constraint_set, ties)
    if exact is None:
        reason = _of_constraints(Outlook(constraint_set, ties), before, event)
    else:
        reason = _of_constraints(exact.own, exact.own_state(before), event) or _of_workflow(exact, before, event)
    if reason is None:
        raise ValueError(f"no deviation at {event} after {before}")
    return reason


def _of_constraints(outlook: Outlook, before: MonitorState, event: EventClass) -> DeviationReason | None:
    if outlook.is_too_late(before, event):
        return _too_late(outlook, before, event)
    if outlook.is_unknown(event):
        text = f"{listed_types([event.type])} is not an event of the process"
        return DeviationReason(kind="unknown_type", constraints=(), text=text)
    after = outlook.advance(before, event)
    clash = _clash(outlook, after)
    if clash is not None:
        return _inconsistent(clash, _subject(outlook, event, clash.events))
    broken = find_rule_clash(outlook, after)
    if broken is None:
        return None
    parts = broken.constraints
    text = f"{_subject(outlook, event)}, and {listed_parts(parts)} {_cannot(parts)} be kept any more"
    return DeviationReason(kind="rule", constraints=parts, text=text)


def _of_workflow(outlook: ExactOutlook, before: MonitorState, event: EventClass) -> DeviationReason | None:
    name, allowed = outlook.process.workflow, _possible(outlook, before)
    came, after = _subject(outlook.own, event), outlook.moved(before, event)
    if after is None:
        text = f"{came} where the workflow {name} does not allow it; {next_to_come(allowed)}"
        if not outlook.allowed(before):
            text = f"{came}, and the trace was over by the workflow {name}"
            return DeviationReason(kind="after_end", constraints=(), text=text)
        return DeviationReason(kind="workflow", constraints=(), allowed=allowed, text=text)
    clash = find_workflow_clash(outlook, after)
    if clash is None:
        return None
    parts = clash.constraints
    text = f"{came}, and no trace of the workflow {name} that begins like this keeps {listed_parts(parts)}"
    return DeviationReason(kind="workflow", constraints=parts, allowed=allowed, text=text)


def _possible(outlook: ExactOutlook, before: MonitorState) -> tuple[str, ...]:
    following = ((name, outlook.moved(before, EventClass(type=name))) for name in outlook.allowed(before))
    return tuple(name for name, moved in following if moved is not None and outlook.is_consistent(moved))


def _too_late(outlook: Outlook, before: MonitorState, event: EventClass) -> DeviationReason:
    past, names = outlook.past(before, event), outlook.names_of(event)
    for part in outlook.constraint_set.parts:
        if isinstance(part, End) and part.type in past:
            text = f"{_subject(outlook, event)} after {listed_types([part.type])}, with which the trace was over"
            return DeviationReason(kind="after_end", constraints=(part,), text=text)
        if isinstance(part, Prior) and part.earlier in names and part.later in past:
            came = listed_types([part.earlier])
            text = f"{came} came after {listed_types([part.later])}, against {part}"
            if part.earlier == part.later:
                text = f"{came} came again, and {part} allows only one"
            return DeviationReason(kind="order", constraints=(part,), text=text)
    raise ValueError(f"{event} is not too late after {before}")


def _clash(outlook: Outlook, after: MonitorState) -> Clash | None:
    """Find a minimal clash of the same kind as the reason that the reasoner reports.

    If several required names can no longer occur, the shortest clash is returned.
    """
    constraint_set = outlook.constraint_set
    occurrence = [part for part in constraint_set.constraints if not isinstance(part, Prior)]
    reasoner, (seen, settled) = outlook.reasoner, outlook.masks(after)
    match reasoner.reason(seen, reasoner.goal(NOTHING), settled):
        case None:
            return None
        case "occurrence":
            return find_clash(constraint_set.of_parts(occurrence), after.seen)
        case "blocked":
            # Other parts have not blocked any name yet.
            orders = [part for part in constraint_set.parts if _later(part) in after.seen]
            subsets = (constraint_set.of_parts([*occurrence, part]) for part in orders)
            clashes = (find_clash(subset, after.seen, NOTHING, after.settled) for subset in subsets)
            return min(filter(None, clashes), key=lambda clash: len(clash.constraints))
        case _:
            return find_clash(constraint_set, after.seen, NOTHING, after.settled)


def _later(part: Part) -> str | None:
    """Return the name after which a part forbids other names. The result is None for clauses and rules."""
    return part.later if isinstance(part, Prior) else part.type if isinstance(part, End) else None


def _inconsistent(clash: Clash, came: str) -> DeviationReason:
    parts = clash.constraints
    match clash.reason:
        case "occurrence":
            text = f"{came}, and {listed_parts(parts)} {_cannot(parts)} be kept any more"
            return DeviationReason(kind="occurrence", constraints=parts, text=text)
        case "blocked":
            return DeviationReason(kind="obligation", constraints=parts, text=f"{came}, {_missed(parts)}")
        case _:
            text = f"{came}, and {listed_parts(parts)} leave no order for what must still come"
            return DeviationReason(kind="cycle", constraints=parts, text=text)


def _missed(parts: Sequence[Part]) -> str:
    ends = [part for part in parts if isinstance(part, End)]
    ordered = [*(part for part in parts if part not in ends), *ends]
    chain, last = ordered[:-1], ordered[-1]
    if ends:
        return f"so the trace is over without what {listed_parts(chain)} {_ask(chain)} for"
    missing = listed_types([last.names[0]])
    return f"and {missing}, for which {listed_parts(chain)} {_ask(chain)}, can no longer come by {last}"


def _cannot(parts: Sequence[Part]) -> str:
    return "cannot" if len(parts) == 1 else "cannot all"


def _ask(parts: Sequence[Part]) -> str:
    return "asks" if len(parts) == 1 else "ask"


def _subject(outlook: Outlook, event: EventClass, events: frozenset[str] = frozenset()) -> str:
    """Describe an event and the earlier events in words: ``U came, after L``.

    The event is described by its symbols among ``events`` or, if there are none, by its type. The other names in
    ``events`` are the earlier events.
    """
    names = outlook.names_of(event)
    symbols = sorted(name for name in names & events if name in outlook.constraint_set.symbols)
    name = listed_types(symbols or [event.type])
    return f"{name} came" + (f", after {listed_types(sorted(events - names))}" if events - names else "")
