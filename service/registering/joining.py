"""The constraint set of a stream that follows a workflow: hand-written constraints, and those of the workflow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from constraints import (
    Clause,
    Constraint,
    ConstraintSet,
    ProcessAutomaton,
    Settings,
    following,
    parse_constraints,
    to_document,
)
from service.registering.reports import joined_with, undeclared_ends
from streams import StreamDeclaration
from workflows import AutomatonTooLarge, CompiledWorkflow, Extraction, Method, minimal_cover

if TYPE_CHECKING:
    from service.stores import Following, FollowMode  # imports Redis, which local runs do not need


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """The results of compiling a version of a workflow: its constraints and, if possible, its automaton.

    ``cover`` is a subset of the constraints from which all others follow.
    """

    workflow: str
    version: int
    extraction: Extraction
    cover: tuple[Constraint, ...]
    automaton: ProcessAutomaton | None
    without_automaton: str = ""

    @classmethod
    def of(cls, compiled: CompiledWorkflow, name: str, version: int = 1) -> Derived:
        return cls(
            workflow=name,
            version=version,
            extraction=compiled.extraction,
            cover=minimal_cover(compiled.extraction),
            automaton=compiled.automaton,
            without_automaton=compiled.without_automaton,
        )

    def to_findings(self) -> dict[str, Any]:
        """Return the results as plain JSON, without the name and the version of the workflow."""
        origins = {str(constraint): origin for constraint, origin in self.extraction.origins.items()}
        return {
            "extraction": self.extraction.to_document(),
            "origins": dict(sorted(origins.items())),
            "cover": [str(constraint) for constraint in self.cover],
            "automaton": _automaton_form(self.automaton),
            "without_automaton": self.without_automaton,
        }

    @classmethod
    def from_findings(cls, findings: Mapping[str, Any], name: str, version: int) -> Derived:
        """Read results from plain JSON in the form of ``to_findings``."""
        bare = _extraction(findings["extraction"])
        by_text = {str(constraint): constraint for constraint in bare.constraints}
        origins = findings["origins"].items()
        return cls(
            workflow=name,
            version=version,
            extraction=replace(bare, origins={by_text[text]: origin for text, origin in origins if text in by_text}),
            cover=tuple(by_text[text] for text in findings["cover"]),
            automaton=_automaton(findings["automaton"]),
            without_automaton=findings["without_automaton"],
        )

    def is_exact(self, mode: FollowMode) -> bool:
        """Return whether a stream in this mode is compared with the automaton of the workflow.

        Raises ``AutomatonTooLarge`` if the mode is ``exact`` and there is no automaton.
        """
        if mode == "exact" and self.automaton is None:
            raise AutomatonTooLarge(
                f"the workflow {self.workflow!r} cannot be followed exactly: {self.without_automaton}; "
                "follow it by its constraints (mode tables)",
                workflow=self.workflow,
            )
        return mode != "tables" and self.automaton is not None

    def followed_as(self, mode: FollowMode) -> Following:
        """Return the record that is stored for a stream that follows this version of the workflow."""
        from service.stores import Following  # noqa: PLC0415 - imports Redis

        return Following(workflow=self.workflow, version=self.version, mode=mode)

    def joined_to(self, own: ConstraintSet, mode: FollowMode) -> ConstraintSet:
        """Return the constraints of the workflow joined with ``own``, the hand-written constraints of the stream."""
        settings = own.settings
        if settings.unknown_types == "deviate":
            own = replace(own, settings=replace(settings, types=settings.types | frozenset(self.extraction.events)))
        return following(
            own,
            workflow=self.workflow,
            version=self.version,
            constraints=self.extraction.constraints,
            end_events=frozenset(self.extraction.end),
            automaton=self.automaton if self.is_exact(mode) else None,
        )


def effective_set(
    own: ConstraintSet, declaration: StreamDeclaration, derived: Derived | None, mode: FollowMode
) -> ConstraintSet:
    """Return all constraints that a stream's traces should keep.

    They are hand-written, or follow from the stream's end events or its workflow.
    """
    joined = joined_with(own, declaration)
    return joined if derived is None else derived.joined_to(joined, mode)


def workflow_mismatches(derived: Derived, declaration: StreamDeclaration, settings: Settings) -> list[str]:
    """Return contradictions between a workflow and the declaration of a stream that follows it, in words."""
    declared, extraction = set(declaration.end_events), derived.extraction
    ends = ConstraintSet(end_events=frozenset(extraction.end), settings=settings)
    name = f"the workflow {derived.workflow!r}"
    contradictions = undeclared_ends(name, ends, declaration)
    if early := sorted(declared.intersection(extraction.events).difference(extraction.end)):
        contradictions.append(
            f"{_listed(early)}: end events of the stream after which {name} continues; its traces end with them"
        )
    if declaration.event_types and (undeclared := sorted(set(extraction.events) - set(declaration.event_types))):
        contradictions.append(
            f"{_listed(undeclared)}: of {name}, but not among the event types that the stream declares"
        )
    return contradictions


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _automaton_form(automaton: ProcessAutomaton | None) -> Any:
    if automaton is None:
        return None
    bare = following(
        ConstraintSet(), workflow="it", version=1, constraints=(), end_events=frozenset(), automaton=automaton
    )
    document: Any = to_document(bare)
    return document["workflow"]["automaton"]


def _automaton(form: Any) -> ProcessAutomaton | None:
    if form is None:
        return None
    bare = {
        "constraints": [],
        "workflow": {"name": "it", "version": 1, "constraints": [], "end": [], "automaton": form},
    }
    process = parse_constraints(bare).constraint_set.process
    assert process is not None, "a document with a workflow gives a set with a process"
    return process.automaton


def _extraction(document: Mapping[str, Any]) -> Extraction:
    prior, exclusive, require = (
        tuple((first, second) for first, second in document[kind]) for kind in ("prior", "exclusive", "require")
    )
    return Extraction(
        events=tuple(document["events"]),
        prior=prior,
        exclusive=exclusive,
        require=require,
        horn=tuple(Clause(frozenset(clause["body"]), clause["head"]) for clause in document["horn"]),
        end=tuple(document["end"]),
        method=Method(document["method"]),
        warnings=tuple(document["warnings"]),
    )
