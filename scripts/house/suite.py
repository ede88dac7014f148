"""Rules on tests: a test has assertions, is not skipped without an issue, and limits the time of its requests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from house.sources import Source, Violation

_CHECKS = re.compile(r"(assert|check|expect)(_|$)")
_CONTEXTS = {"pytest.raises", "pytest.warns", "pytest.deprecated_call"}
_SKIPS = {
    "pytest.skip",
    "pytest.xfail",
    "pytest.importorskip",
    "pytest.mark.skip",
    "pytest.mark.skipif",
    "pytest.mark.xfail",
    "unittest.skip",
}
_REQUESTS = {f"httpx.{name}" for name in "AsyncClient Client delete get patch post put request stream".split()}
_ISSUE = re.compile(r"(#|issue )\d+")


def assertionless_tests(source: Source) -> Iterator[Violation]:
    """Check that each test function asserts, itself or through a function of its file."""
    if not source.is_test:
        return
    functions = {function.name: function for function in source.functions}
    for name, function in functions.items():
        if name.startswith("test") and not _asserts(source, function, functions, frozenset()):
            yield Violation(source.path, function.lineno, f"{name} asserts nothing")


def skipped_tests(source: Source) -> Iterator[Violation]:
    """Check that a test that is skipped, or may fail, names an issue."""
    if not source.is_of_tests:
        return
    skips = {id(node) for node in source.nodes if isinstance(node, ast.Attribute) and source.resolve(node) in _SKIPS}
    calls = (node for node in source.nodes if isinstance(node, ast.Call) and id(node.func) in skips)
    skips -= {id(call.func) for call in calls if _names_issue(call)}
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and id(node) in skips:
            yield Violation(source.path, node.lineno, "a skipped or failing test names an issue, as #12")


def impatient_tests(source: Source) -> Iterator[Violation]:
    """Check that each HTTP request of a test has a time limit.

    The default of ``httpx``, five seconds, may be too short on a busy machine.
    """
    if not source.is_of_tests:
        return
    for node in source.nodes:
        if isinstance(node, ast.Call) and source.resolve(node.func) in _REQUESTS:
            options = {keyword.arg for keyword in node.keywords}
            if not options & {"timeout", "transport", None}:
                yield Violation(source.path, node.lineno, "write: timeout=PATIENCE_S")


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _asserts(source: Source, function: _Function, functions: dict[str, _Function], seen: frozenset[str]) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if not isinstance(node, ast.Call):
            continue
        target = source.resolve(node.func)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else target.rpartition(".")[2]
        if target in _CONTEXTS:
            return True
        helper = functions.get(last)
        if helper is None and _CHECKS.match(last):
            return True
        if (
            helper is not None
            and last not in seen
            and _asserts(source, helper, functions, seen | {function.name, last})
        ):
            return True
    return False


def _names_issue(call: ast.Call) -> bool:
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and _ISSUE.search(node.value)
        for node in ast.walk(call)
    )
