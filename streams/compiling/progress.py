"""How far compiling is."""

from __future__ import annotations

from dataclasses import dataclass

COMPILING = "compiling kernels"
"""How what ``CompileProgress`` says begins."""


@dataclass(frozen=True, slots=True)
class CompileProgress:
    """How far compiling is.

    Attributes:
        kept: Kernels that are compiled and kept.
        needed: Kernels that are needed; None: not known yet.
    """

    kept: int
    needed: int | None

    @property
    def is_complete(self) -> bool:
        """Whether all that is needed is kept."""
        return self.kept == self.needed

    @property
    def text(self) -> str:
        """In words."""
        return COMPILING if self.needed is None else f"{COMPILING}, {self.kept} of {self.needed}"
