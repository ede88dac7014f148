"""What the reader of a PNML file has to say about it: problems, which refuse it, and notices."""

from __future__ import annotations

from dataclasses import dataclass, field

from workflows.errors import ModelRefused

MAX_TOKENS_IN_ALL = 200_000
MAX_PROBLEMS = 100

_LONGEST_ID = 200


@dataclass(slots=True)
class Findings:
    """What is wrong with a net, and what of it was left out."""

    problems: list[tuple[str, str]] = field(default_factory=list)
    notices: dict[str, str] = field(default_factory=dict)
    tokens: int = 0

    def refuse(self, element: str, message: str) -> None:
        """A problem: the net would not mean what it says. Reading continues, so that others are found too.

        Raises:
            ModelRefused: It is one too many.
        """
        self.problems.append((element[:_LONGEST_ID], message))
        if len(self.problems) >= MAX_PROBLEMS:
            self.finish()

    def finish(self) -> None:
        """Nothing more will be found.

        Raises:
            ModelRefused: There were problems.
        """
        if self.problems:
            raise ModelRefused(self.problems)

    def count_tokens(self, count: int) -> None:
        """Add to the tokens of all markings and arcs.

        Raises:
            ModelRefused: They are too many.
        """
        self.tokens += count
        if self.tokens > MAX_TOKENS_IN_ALL:
            self.refuse("", f"all markings and weights sum to more than {MAX_TOKENS_IN_ALL:,}")
            self.finish()

    def note(self, element: str, message: str) -> None:
        """Something was left out; each sort of thing is noted once."""
        self.notices.setdefault(message, element)
