"""All rules by name, and the application of a rule to a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from house.boundaries import environment_reads, import_time_io, inner_imports, module_state, named_modules, wall_clock
from house.docstrings import plain_docstrings
from house.failures import broad_except, unissued_todo
from house.kernels import cached_callees, kernel_flags, kernel_imports
from house.names import noun_names
from house.packages import package_front
from house.sizes import file_size, function_size
from house.sources import Rule, Source, Violation
from house.suite import assertionless_tests, impatient_tests, skipped_tests
from house.words import plain_words

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "file-size": file_size,
        "function-size": function_size,
        "kernel-imports": kernel_imports,
        "kernel-flags": kernel_flags,
        "cached-callees": cached_callees,
        "broad-except": broad_except,
        "todo": unissued_todo,
        "module-state": module_state,
        "import-io": import_time_io,
        "environment": environment_reads,
        "wall-clock": wall_clock,
        "inner-imports": inner_imports,
        "named-modules": named_modules,
        "package-front": package_front,
        "test-asserts": assertionless_tests,
        "skipped-tests": skipped_tests,
        "patient-tests": impatient_tests,
        "plain-words": plain_words,
        "plain-docstrings": plain_docstrings,
        "noun-names": noun_names,
    }
)
OTHER_RULES = frozenset({"one-signature"})  # checked after the test suite


def check(source: Source, rule_name: str) -> list[Violation]:
    """Return the violations of one rule that no skip comment covers."""
    allowed = {allowance.line for allowance in source.allowances if allowance.rule == rule_name}
    return [violation for violation in RULES[rule_name](source) if not _covers(allowed, violation)]


def misused_allowances(source: Source) -> Iterator[Violation]:
    """Yield a violation for each skip comment without a rule, a reason or an effect."""
    for allowance in source.allowances:
        if allowance.rule in OTHER_RULES:
            continue
        if allowance.rule not in RULES:
            yield Violation(source.path, allowance.line, "write: house: allow <rule>: <reason of some words>")
        elif not any(_covers({allowance.line}, violation) for violation in RULES[allowance.rule](source)):
            yield Violation(source.path, allowance.line, f"nothing here breaks {allowance.rule}; remove the comment")


def _covers(allowed: set[int], violation: Violation) -> bool:
    """Return whether a skip comment covers a violation.

    A comment covers its own line and the next. A violation of the whole file (line 0) is covered by a comment anywhere.
    """
    return bool(allowed) if violation.line == 0 else bool(allowed & {violation.line, violation.line - 1})
