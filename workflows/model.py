"""A workflow model as it was read, in any form."""

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
    """The forms of models."""

    BPMN = "bpmn"
    PNML = "pnml"
    TREE = "tree"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNotice:
    """A notice about a part of a model that was left out or read in an unexpected way; ``element`` may be empty."""

    element: str
    message: str

    def __str__(self) -> str:
        return f"{self.element}: {self.message}" if self.element else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options for reading a model.

    Attributes:
        process: Id of the chosen process, if a file has several; None: the only one.
        mapping: From names or ids of tasks, white space normalised, to event types; None makes a task silent. Tasks
            that are not in it emit their names. The key ``:instances`` is not a task: ``zero-or-more`` or
            ``one-or-more`` is how often multi-instance activities of BPMN happen if the model does not specify it.
    """

    process: str | None = None
    mapping: Mapping[str, str | None] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mapping", {normalised(task): label for task, label in self.mapping.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowModel:
    """A model that was read; its name may be empty, and ``diagram`` is its own drawing, if any."""

    name: str
    format: ModelFormat
    source: Source
    notices: tuple[ModelNotice, ...] = ()
    diagram: Diagram | None = None
