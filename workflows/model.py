"""A workflow model as the reader of its form returns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from workflows.diagram import Diagram
from workflows.naming import normalised
from workflows.nets.graph import FlowGraph
from workflows.nets.net import WorkflowNet
from workflows.tree import ProcessTree

Source: TypeAlias = ProcessTree | FlowGraph | WorkflowNet


class ModelFormat(StrEnum):
    """The forms in which models are read."""

    BPMN = "bpmn"
    PNML = "pnml"
    TREE = "tree"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNotice:
    """A notice that a part of a model was left out or read in an unexpected way. ``element`` may be empty."""

    element: str
    message: str

    def __str__(self) -> str:
        return f"{self.element}: {self.message}" if self.element else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options for reading a model.

    Attributes:
        process: Id of the process to read; None if the file has only one.
        mapping: Names or ids of tasks, with white space normalised, and their event types. None makes a task silent. A
            task that is not in the mapping emits its name. The key ``:instances`` is a setting, not a task: its value
            ``zero-or-more`` or ``one-or-more`` applies to multi-instance activities of BPMN without a number in the
            model.
    """

    process: str | None = None
    mapping: Mapping[str, str | None] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mapping", {normalised(task): label for task, label in self.mapping.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowModel:
    """A workflow model in the form in which it was read: a process tree, a flow graph or a net.

    ``name`` may be empty. ``diagram`` is the drawing in the file, or None.
    """

    name: str
    format: ModelFormat
    source: Source
    notices: tuple[ModelNotice, ...] = ()
    diagram: Diagram | None = None
