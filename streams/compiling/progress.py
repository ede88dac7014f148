"""The progress of compiling kernels."""

from __future__ import annotations

from dataclasses import dataclass

COMPILING = "compiling kernels"
"""The beginning of ``CompileProgress.text``."""


@dataclass(frozen=True, slots=True)
class CompileProgress:
    """The progress of compiling kernels: the number of cached ones, and of needed ones (None: not known yet)."""

    kept: int
    needed: int | None

    @property
    def is_complete(self) -> bool:
        """Whether all needed kernels are cached."""
        return self.kept == self.needed

    @property
    def text(self) -> str:
        """The progress in words."""
        return COMPILING if self.needed is None else f"{COMPILING}, {self.kept} of {self.needed}"
