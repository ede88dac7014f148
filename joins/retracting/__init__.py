"""Events that are taken out of a join, as they are retracted, and what it has said of them taken back."""

from joins.retracting.beside import KnownBeside
from joins.retracting.retractions import Retractions

__all__ = ["KnownBeside", "Retractions"]
