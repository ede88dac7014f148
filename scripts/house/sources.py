"""Input and output of the rules: Python files with their syntax trees, and violations."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
PACKAGES: tuple[str, ...] = tuple(_WHEEL["hooks"]["custom"]["packages"])
LITERATURE = "literature"  # the rules of shipped packages apply to this package, although it is not shipped

_ALLOWANCE = re.compile(r"#\s*house:(?P<rest>.*)$")
_ALLOWANCE_FORM = re.compile(r"\s*allow (?P<rule>[a-z-]+): (?P<reason>.+)")
_REASON_WORDS = 3
_UNTRACKED_FOLDERS = {"__pycache__", "node_modules", "dist", "build", "data", "spark-warehouse", "metastore_db"}


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule. Line 0 means the file as a whole."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Allowance:
    """A skip comment. If the form of the comment is wrong, ``rule`` is empty."""

    line: int
    rule: str
    reason: str


@dataclass(frozen=True)
class Source:
    """A Python file.

    Attributes:
        path: The path relative to the root of the project, with forward slashes.
        text: The content of the file.
    """

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of the file."""
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree, in the order of ``ast.walk``. The computation takes half as long as ``ast.walk``."""
        nodes: list[ast.AST] = [self.tree]
        for node in nodes:
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, ast.AST):
                    nodes.append(value)
                elif isinstance(value, list):
                    nodes += [inner for inner in value if isinstance(inner, ast.AST)]
        return tuple(nodes)

    @cached_property
    def names(self) -> dict[str, str]:
        """Every imported name with its full dotted name: ``{"np": "numpy", "now": "datetime.datetime.now"}``."""
        targets: dict[str, str] = {}
        for node in self.imports:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    targets[alias.asname or top] = alias.name if alias.asname else top
            elif node.module and not node.level:
                targets.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
        return targets

    @cached_property
    def allowances(self) -> tuple[Allowance, ...]:
        """The skip comments, in order."""
        allowances = []
        for number, line in enumerate(self.text.splitlines(), start=1):
            if comment := _ALLOWANCE.search(line):
                form = _ALLOWANCE_FORM.fullmatch(comment["rest"])
                is_reasoned = form is not None and len(form["reason"].split()) >= _REASON_WORDS
                rule, reason = (form["rule"], form["reason"]) if form and is_reasoned else ("", comment["rest"])
                allowances.append(Allowance(number, rule, reason))
        return tuple(allowances)

    @property
    def package(self) -> str | None:
        """The package that the file belongs to: a shipped one, or ``literature`` without its tests and benchmarks."""
        top, _, inner = self.path.partition("/")
        is_own = top in PACKAGES or (top == LITERATURE and inner.partition("/")[0] not in ("tests", "benchmarks"))
        return top if is_own else None

    @property
    def is_kernel(self) -> bool:
        """Whether the file contains kernels."""
        return self.package is not None and "/kernels/" in self.path

    @property
    def is_test(self) -> bool:
        """Whether pytest collects the file."""
        return self.is_of_tests and Path(self.path).name.startswith("test_")

    @property
    def is_of_tests(self) -> bool:
        """Whether the file belongs to the tests."""
        return self.path.startswith(("tests/", f"{LITERATURE}/tests/"))

    def resolve(self, node: ast.expr) -> str:
        """Return the dotted name to which an expression resolves through the imports, or the empty text."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.names.get(node.id, node.id), *reversed(parts)])

    @cached_property
    def functions(self) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
        """All functions, including methods and inner functions."""
        return tuple(node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))

    @cached_property
    def imports(self) -> tuple[ast.Import | ast.ImportFrom, ...]:
        """All imports, including imports in functions."""
        return tuple(node for node in self.nodes if isinstance(node, ast.Import | ast.ImportFrom))


Rule: TypeAlias = Callable[[Source], Iterator[Violation]]


@cache
def read_source(path: Path) -> Source:
    """Read and parse a file of the project. The result is cached."""
    return Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def project_files(suffix: str = "") -> list[Path]:
    """Return the project's files, sorted: those under version control, and new files that are not ignored.

    A copy without a git history is searched instead.
    """
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    is_repository = listing.returncode == 0 and (ROOT / ".git").exists()
    names = listing.stdout.split("\0") if is_repository else list(_walk())
    return sorted(path for name in names if name.endswith(suffix) and (path := ROOT / name).is_file())


def _walk() -> Iterator[str]:
    for folder, children, names in os.walk(ROOT):
        kept = [name for name in children if name not in _UNTRACKED_FOLDERS and not name.endswith(".egg-info")]
        children[:] = [name for name in kept if not name.startswith(".") or name == ".ci"]
        for name in names:
            yield (Path(folder) / name).relative_to(ROOT).as_posix()
