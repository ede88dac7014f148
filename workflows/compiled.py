"""A model with everything that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

from constraints import ProcessAutomaton
from workflows.limits import CompileLimits
from workflows.model import WorkflowModel
from workflows.nets.net import WorkflowNet
from workflows.relations.extraction import Extraction
from workflows.tree import ProcessTree

__all__ = ["CompileLimits", "CompiledWorkflow"]  # the limits stand apart, for sub-packages that this module builds on


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledWorkflow:
    """What is known of a model.

    Attributes:
        model: As it was read.
        tree: The same as blocks, if it is made of blocks.
        net: The same as a net; None where it came as a tree.
        automaton: Its language, minimal; None where that is too large, or not regular.
        without_automaton: Why there is none, in words; empty if there is one.
        extraction: The constraints that it keeps.
    """

    model: WorkflowModel
    tree: ProcessTree | None
    net: WorkflowNet | None
    automaton: ProcessAutomaton | None
    without_automaton: str = ""
    extraction: Extraction
