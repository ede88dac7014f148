"""Lists and plurals for sentences about constraints."""

from __future__ import annotations

from collections.abc import Sequence

from constraints.model import Part, quoted
from nfa import Atom, describe_atom

MOST_LISTED = 8


def listed(words: Sequence[str]) -> str:
    """Write words as a list in a sentence: ``A``, ``A and B``, ``A, B and C``."""
    return " and ".join(([", ".join(words[:-1])] if len(words) > 1 else []) + list(words[-1:]))


def listed_atoms(atoms: Sequence[Atom]) -> str:
    """Write atoms as a list in pattern text."""
    return listed([describe_atom(atom) for atom in atoms])


def alternative_text(term: int, alternatives: int, opening: str = ", ") -> str:
    """Name an alternative of a pattern, after ``opening``. The text is empty if the pattern has only one."""
    return f"{opening}alternative {term + 1} of {alternatives}" if alternatives > 1 else ""


def listed_parts(parts: Sequence[Part]) -> str:
    """Write constraints as a list in their printed form."""
    return listed([str(part) for part in parts])


def listed_types(names: Sequence[str]) -> str:
    """Write event types as a list in their printed form."""
    return listed([quoted(name) for name in names])


def with_workflow(workflow: str, parts: Sequence[Part]) -> str:
    """Return the words "the workflow W allows", or with constraints "the workflow W with A and B allows"."""
    beside = f" with {listed_parts(parts)}" if parts else ""
    return f"the workflow {workflow}{beside} allows"


def next_to_come(allowed: Sequence[str]) -> str:
    """Describe in words the types that a workflow allows next, truncated."""
    if not allowed:
        return "nothing more comes in it"
    names = [quoted(name) for name in allowed[:MOST_LISTED]]
    more = len(allowed) - len(names)
    return f"next can come {', '.join(names)}{f' and {more} more' if more else ''}"
