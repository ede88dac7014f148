"""The project's own rules that no linter checks, as small functions over syntax trees.

Each module contains rules on one subject. ``tests/house`` applies the rules to the code base, and shows with example
code that each rule finds violations. The comment ``# house: allow <rule>: <reason>`` silences a rule on its own line
and the next. A comment without a reason, for an unknown rule, or without effect is an error itself.
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
