"""A workflow model as it was read, in whichever form it came."""

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
    """The forms in which models come."""

    BPMN = "bpmn"
    PNML = "pnml"
    TREE = "tree"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNotice:
    """Something of a model that was left out, or read in a way that one should know.

    Attributes:
        element: Id of the element; empty for the whole.
        message: What is so, in words.
    """

    element: str
    message: str

    def __str__(self) -> str:
        return f"{self.element}: {self.message}" if self.element else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How a model is to be read.

    Attributes:
        process: Id of the process that is meant, where a file has several; None: the only one.
        mapping: From names or ids of tasks, white space normalised, to event types; None makes a task silent. Names
            that are not in it stand for themselves. The key ``:instances`` is no task: ``zero-or-more`` or
            ``one-or-more`` says how often multi-instance activities of BPMN happen where the model does not say.
    """

    process: str | None = None
    mapping: Mapping[str, str | None] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mapping", {normalised(task): label for task, label in self.mapping.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowModel:
    """A model that was read.

    Attributes:
        name: Of the model or the process; may be empty.
        format: The form in which it came.
        source: What it says.
        notices: What was left out.
        diagram: Its own drawing, if it has one.
    """

    name: str
    format: ModelFormat
    source: Source
    notices: tuple[ModelNotice, ...] = ()
    diagram: Diagram | None = None
