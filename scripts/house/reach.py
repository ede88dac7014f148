"""The rule that a package ships only modules that a request, a command or the public library can reach.

The import graph is read from syntax trees. Its entry points are the commands of ``pyproject.toml``, the modules that
documents, images and scripts start with ``python -m``, the names in code blocks of documents, and all exports of the
packages' fronts. From the front of an inner folder, only exports that some module imports are reached.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import PurePosixPath

from house.documents import code_blocks
from house.sources import PACKAGES, PROJECT, ROOT, Source, Violation, project_files

_MESSAGE = "neither a request, a command nor the public library reaches this module; literature/ may keep it"
_STARTED = re.compile(r"""(?<!\S)["']?-m["',\s]+([A-Za-z_][\w.]*)""")
_MODULE = re.compile(r"[a-z_]\w*(\.\w+)+")
_STARTING_FILES = ("Dockerfile", "docker-compose.yml")


class Modules:
    """The modules of the packages, and their imports.

    Args:
        sources: The files of the modules, including stubs.
    """

    def __init__(self, sources: Iterable[Source]) -> None:
        self._sources: dict[str, list[Source]] = {}
        for source in sources:
            self._sources.setdefault(_name_of(source.path), []).append(source)

    def unreachable(self, entries: Iterable[str]) -> Iterator[Violation]:
        """Yield a violation for each module that no entry point reaches.

        Args:
            entries: Dotted names of modules, or of functions and classes in them.
        """
        reached: set[str] = set()
        waiting = list(entries)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += self._reached_from(name)
        for module, (source, *_) in self._sources.items():
            if module not in reached:
                yield Violation(source.path, 0, _MESSAGE)

    def _reached_from(self, name: str) -> Iterator[str]:
        """Yield the names that a dotted name reaches directly.

        These are its package and, for a module, its imports. For a name that a front exports, the module that defines
        it.
        """
        package, _, last = name.rpartition(".")
        if package:
            yield package
        if name not in self._sources:
            yield from self._exports.get(package, {}).get(last, ())
        elif name not in self._exports or name in PACKAGES:
            yield from self._imports(name)

    @cached_property
    def _exports(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """The exports of each front: their names, with the dotted names that they refer to."""
        fronts = [name for name, (source, *_) in self._sources.items() if PurePosixPath(source.path).stem == "__init__"]
        return {
            front: {export: (name,) for source in self._sources[front] for export, name in _imported(source, front)}
            for front in fronts
        }

    def _imports(self, module: str) -> Iterator[str]:
        for source in self._sources[module]:
            for _, name in _imported(source, module):
                yield from self._with_all(name.removesuffix(".*"))
            yield from self._named_by_texts(source)

    def _with_all(self, name: str) -> Iterator[str]:
        """Yield an imported name. If it is a front that is imported as a module, also yield all its exports."""
        yield name
        for export in self._exports.get(name, ()):
            yield f"{name}.{export}"

    def _named_by_texts(self, source: Source) -> Iterator[str]:
        """Yield modules that texts name: ``MODULE``, ``MODULE:FUNCTION``, or the end of ``f"PACKAGE.{end}"``."""
        texts = {node.value for node in source.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        begins = {
            str(node.values[0].value)
            for node in source.nodes
            if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant)
        }
        names = {text.partition(":")[0] for text in texts if "." in text}
        names.update(begin + text.replace("-", "_") for begin in begins if begin.endswith(".") for text in texts)
        for name in sorted(names & set(self._sources)):
            yield name
            yield f"{name}.__main__"


def entry_points() -> Iterator[str]:
    """Yield the dotted names of all entry points of the product."""
    yield from PACKAGES
    for command in PROJECT["project"]["scripts"].values():
        yield command.replace(":", ".")
    for path in project_files():
        place = path.relative_to(ROOT)
        is_document = path.suffix == ".md" and place.parts[:-1] in ((), ("docs",), ("docs", "howto"))
        if is_document or place.parts[0] == "scripts" or place.as_posix() in _STARTING_FILES:
            yield from _entered_by(path.read_text(encoding="utf-8"), is_document=is_document)


def _entered_by(text: str, *, is_document: bool) -> Iterator[str]:
    for started in _STARTED.findall(text):
        yield from (started, f"{started}.__main__")
    for block in code_blocks(text) if is_document else ():
        if block.language == "python":
            source = Source("document", block.text)
            yield from (name for _, name in _imported(source, ""))
            texts = (node.value for node in source.nodes if isinstance(node, ast.Constant))
            yield from (text for text in texts if isinstance(text, str) and _MODULE.fullmatch(text))


def _imported(source: Source, module: str) -> Iterator[tuple[str, str]]:
    """Yield the imported names of a module, each with the dotted name that it refers to."""
    package = module if PurePosixPath(source.path).stem == "__init__" else module.rpartition(".")[0]
    for node in source.imports:
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
        else:
            outer = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            parent = ".".join([*outer, *([node.module] if node.module else [])])
            yield from ((alias.asname or alias.name, f"{parent}.{alias.name}") for alias in node.names)


def _name_of(path: str) -> str:
    """Return the dotted name of the module in a file."""
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
