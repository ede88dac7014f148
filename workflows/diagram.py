"""Diagrams: the positions of the elements of a drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A drawn element of a model.

    Attributes:
        kind: The symbol to draw, such as ``task``, ``exclusive``, ``parallel``, ``inclusive``, ``event-based``,
            ``start``, ``end``, ``intermediate``, ``boundary``, ``subprocess``, ``place``, ``transition``, ``silent``,
            ``pool``, ``lane``, ``note``, ``data``.
        x: Left edge (``y``: upper edge), in the drawing's own unit.
    """

    element: str
    kind: str
    label: str
    x: float
    y: float
    width: float
    height: float
    event: str | None = None

    @property
    def centre(self) -> Point:
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A drawn flow or arc of a model: a line through at least two points."""

    element: str
    points: tuple[Point, ...]
    label: str = ""
    is_dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """A drawing: its shapes in drawing order, and its flows."""

    shapes: tuple[Shape, ...]
    edges: tuple[Edge, ...]
