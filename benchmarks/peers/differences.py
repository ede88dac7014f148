"""Differences of meaning between engines for the same words, each with the smallest example that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A known difference of meaning.

    Attributes:
        title: The difference in a sentence.
        events: The type and second of each event, all with one key.
        pattern: The pattern in our language.
        ours: The number of matches of our engine.
        theirs: The number of matches of the other engine.
        way_out: How to express the same meaning in the other engine, if possible.
    """

    title: str
    events: tuple[tuple[str, int], ...]
    pattern: str
    ours: int
    theirs: int
    way_out: str = ""

    @property
    def note(self) -> str:
        """The difference as a paragraph."""
        shown = ", ".join(f"{kind} at {second} s" for kind, second in self.events)
        return (
            f"{self.title} Example: `{self.pattern}` on {shown}: {self.ours} here, {self.theirs} there."
            f"{' ' + self.way_out if self.way_out else ''}"
        )


DIFFERENCES: Mapping[str, Difference] = {
    "window": Difference(
        title="Siddhi's `within` includes its bound; ours, Flink's and CORE's do not.",
        events=(("A", 0), ("B", 60)),
        pattern="PATTERN p EVENT SEQ(A a, B b) WITHIN 60 s",
        ours=0,
        theirs=1,
        way_out="`within 59999 millisec` says the same where times are whole milliseconds.",
    ),
}
