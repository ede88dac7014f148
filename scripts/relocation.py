"""Build hook for wheels: moves all packages below ``forestall``, because other distributions may also have an ``api``.

In the repository, packages are top-level folders. In a wheel, they are ``forestall/_packages/NAME`` (ADR 81). The build
rewrites all references to modules in the sources. References are imports, texts that are exactly the dotted name of a
module (``:`` and more may follow), and f-strings that start with the name of a package and a dot. A rule of the project
refuses all other ways to name a module.
"""

from __future__ import annotations

import ast
import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FRONT = "forestall"
INNER = "_packages"
PREFIX = f"{FRONT}.{INNER}."
_SOURCES = (".py", ".pyi")
_MANUAL, _PAGES = (".md", ".svg", ".png"), "api/manual/pages"  # the documents that the service shows
_DOCSTRING = '"""The packages of Forestall, which are top-level folders in its repository; they are not public."""\n'


class RelocatingHook(BuildHookInterface[Any]):
    """A build hook of Hatchling.

    It writes the files of a wheel into a separate folder, which becomes the wheel's content.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Relocate the packages for a wheel. An editable installation imports the packages from the repository."""
        if version == "editable":
            return
        self._folder = Path(tempfile.mkdtemp())
        relocate(Path(self.root), self._folder, self.config["packages"])
        build_data["force_include"][str(self._folder / FRONT)] = FRONT

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder with the wheel's files."""
        if version != "editable":
            shutil.rmtree(self._folder)


def relocate(root: Path, target: Path, packages: Collection[str]) -> None:
    """Write the packages of a repository in the form that they have in a wheel.

    Args:
        root: The folder of the repository.
        target: The folder to write to.
        packages: The names of the packages, including ``forestall``.
    """
    files = [path for package in packages for path in sorted((root / package).rglob("*")) if _is_shipped(path)]
    relocation = Relocation(packages, [path.relative_to(root) for path in files])
    for path in files:
        place = path.relative_to(root)
        goal = target / (place if place.parts[0] == FRONT else Path(FRONT, INNER, place))
        goal.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in _SOURCES:
            goal.write_text(relocation.rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            shutil.copyfile(path, goal)
    for path in sorted((root / "docs").rglob("*")):
        if path.suffix in _MANUAL:
            goal = target / FRONT / INNER / _PAGES / path.relative_to(root / "docs")
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, goal)
    (target / FRONT / INNER / "__init__.py").write_text(_DOCSTRING, encoding="utf-8")


def _is_shipped(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


class Relocation:
    """Rewrites the references to modules in a source file.

    Args:
        packages: The packages. All except ``forestall`` are moved.
        files: The files of the packages, relative to the repository.
    """

    def __init__(self, packages: Collection[str], files: Collection[Path]) -> None:
        self._moved = frozenset(packages) - {FRONT}
        sources = [file.with_suffix("") for file in files if file.suffix == ".py"]
        places = {file.parent if file.name == "__init__" else file for file in sources}
        self.modules = frozenset(".".join(place.parts) for place in places if place.parts[0] in self._moved)

    def rewritten(self, text: str) -> str:
        """Return the source with all references to modules rewritten."""
        lines = text.encode().splitlines(keepends=True)
        for line, column, old, new in sorted(self._changes(ast.parse(text)), reverse=True):
            content = lines[line - 1]
            place = content.index(old.encode(), column)
            lines[line - 1] = content[:place] + new.encode() + content[place + len(old.encode()) :]
        return b"".join(lines).decode()

    def _changes(self, tree: ast.Module) -> Iterator[tuple[int, int, str, str]]:
        """Yield each change: its line, the first possible column, the old text, and the new text."""
        for node in ast.walk(tree):
            match node:
                case ast.ImportFrom(module=str(module), level=0) if self._is_moved(module):
                    yield node.lineno, node.col_offset + len("from"), module, PREFIX + module
                case ast.Import():
                    yield from self._of_import(node)
                case ast.Constant(value=str(value)) if value.partition(":")[0] in self.modules and "." in value:
                    yield node.lineno, node.col_offset, value, PREFIX + value
                case ast.JoinedStr(values=[ast.Constant(value=str(value)), *_]) if self._is_beginning(value):
                    yield node.lineno, node.col_offset, value, PREFIX + value

    def _of_import(self, node: ast.Import) -> Iterator[tuple[int, int, str, str]]:
        for alias in node.names:
            if not self._is_moved(alias.name):
                continue
            if alias.asname is None and "." in alias.name:
                raise ValueError(f"line {node.lineno}: write from … import …, or import {alias.name} as a name")
            new = f"{PREFIX}{alias.name}" if alias.asname else f"{PREFIX}{alias.name} as {alias.name}"
            yield alias.lineno, alias.col_offset, alias.name, new

    def _is_moved(self, module: str) -> bool:
        return module.partition(".")[0] in self._moved

    def _is_beginning(self, text: str) -> bool:
        """Return whether an f-string's first text is a module's name and a dot."""
        return text.endswith(".") and text.removesuffix(".") in self.modules
