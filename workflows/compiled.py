"""A model with everything that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

from constraints import ProcessAutomaton
from workflows.limits import CompileLimits
from workflows.model import WorkflowModel
from workflows.nets.net import WorkflowNet
from workflows.relations.extraction import Extraction
from workflows.tree import ProcessTree

__all__ = ["CompileLimits", "CompiledWorkflow"]  # limits have their own module, for sub-packages that are imported here


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledWorkflow:
    """A model with everything that follows from it.

    ``tree`` is the model as blocks, if it is made of blocks; ``net`` is None if it was read as a tree. The automaton of
    its language is minimal; None if it is too large, or not regular, for the reason in ``without_automaton``.
    """

    model: WorkflowModel
    tree: ProcessTree | None
    net: WorkflowNet | None
    automaton: ProcessAutomaton | None
    without_automaton: str = ""
    extraction: Extraction
