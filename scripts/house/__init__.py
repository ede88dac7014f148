"""The project's own rules that no linter knows, as small checks over syntax trees.

Purpose: each module holds rules on one subject; ``tests/house`` runs them over the tree and shows on planted code that
each rule finds violations. A rule is silenced on one line by ``# house: allow <rule>: <reason>``, on it or just above
it; a comment without a reason, for an unknown rule, or without effect is an error itself.
"""

from house.ruleset import RULES, check
from house.signatures import called_kernels, surplus_signatures
from house.sources import PACKAGES, ROOT, Source, Violation, project_files, read_source

__all__ = [
    "PACKAGES",
    "ROOT",
    "RULES",
    "Source",
    "Violation",
    "called_kernels",
    "check",
    "project_files",
    "read_source",
    "surplus_signatures",
]
