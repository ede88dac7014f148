"""Lua scripts that run inside the server of the log. Each is a file, and has keys and arguments by name.

A file begins with its header, the lines that start with ``--!``::

    --! uses: fitting
    --! keys: layout, shards*
    --! args: kind, body, shard_count

``keys`` and ``args`` name the parameters of the script, in the order of KEYS and ARGV. The script has a local variable
for each name. The last name in a line may be a list, marked by ``*``. ``uses`` names files of a folder ``parts``, whose
functions the script calls. This folder is beside the script's folder, or in this package if scripts of several packages
use the part. A part may use other parts. A header line may be repeated to add more names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import PurePosixPath
from pkgutil import get_data
from typing import TypeAlias, cast

ScriptValue: TypeAlias = str | bytes | int
ScriptInput: TypeAlias = ScriptValue | Sequence[ScriptValue]

_MARK = "--!"
_ONE = (str, bytes, int)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A Lua script for Redis whose keys and arguments have names.

    Attributes:
        keys: Names of the keys, in the order of KEYS. A last name that ends in ``*`` is a list.
        args: Names of the arguments, in the order of ARGV, in the same form.
        names: All of these names, without ``*``.
    """

    name: str
    text: str
    keys: tuple[str, ...]
    args: tuple[str, ...]
    names: frozenset[str]

    def bind(self, values: Mapping[str, ScriptInput]) -> tuple[list[str], list[ScriptValue]]:
        """Return the lists KEYS and ARGV for values given by name.

        Raises ``TypeError`` if a name is missing or unknown, or if lists and single values are confused.
        """
        if self.names != values.keys():
            missing, unknown = sorted(self.names - values.keys()), sorted(values.keys() - self.names)
            raise TypeError(f"the script {self.name} has no value for {missing} and does not know {unknown}")
        return cast("list[str]", self._values(self.keys, values)), self._values(self.args, values)

    def _values(self, names: Sequence[str], inputs: Mapping[str, ScriptInput]) -> list[ScriptValue]:
        values: list[ScriptValue] = []
        for name in names:
            is_list = name[-1] == "*"
            value = inputs[name[:-1] if is_list else name]
            if isinstance(value, _ONE) == is_list:
                raise TypeError(f"the script {self.name} takes {name} (* marks a list) and was given {value!r:.80}")
            values += cast("Sequence[ScriptValue]", value if is_list else (value,))
        return values


@cache
def read_script(package: str, name: str) -> Script:
    """Read the script ``<name>.lua`` from the files of a package. ``name`` may begin with folders and slashes."""
    source = _source(package, name)
    header = _header(name, source)
    parts: dict[str, str] = {}
    _add_parts(package, PurePosixPath(name).parent.parent / "parts", header["uses"], parts)
    bound = [*_bound(name, "KEYS", header["keys"]), *_bound(name, "ARGV", header["args"])]
    keys, args = header["keys"], header["args"]
    names = frozenset(parameter.removesuffix("*") for parameter in (*keys, *args))
    return Script(name=name, text="\n".join([*parts.values(), *bound, source]), keys=keys, args=args, names=names)


def _bound(script: str, table: str, names: Sequence[str]) -> Iterator[str]:
    if any(name.endswith("*") for name in names[:-1]):
        raise ValueError(f"the script {script} has a list before its last name: {', '.join(names)}")
    for number, name in enumerate(names, start=1):
        if not name.endswith("*"):
            yield f"local {name} = {table}[{number}]"
        else:
            variable = name.removesuffix("*")
            yield f"local {variable} = {{}} for i = {number}, #{table} do {variable}[i - {number - 1}] = {table}[i] end"


def _header(name: str, source: str) -> dict[str, tuple[str, ...]]:
    header: dict[str, tuple[str, ...]] = {"uses": (), "keys": (), "args": ()}
    for line in takewhile(lambda line: line.startswith(_MARK), source.splitlines()):
        member, _, listed = line.removeprefix(_MARK).partition(":")
        if member.strip() not in header:
            raise ValueError(f"the script {name} has the header {line!r}; a header is uses:, keys: or args: and names")
        header[member.strip()] += tuple(parameter.strip() for parameter in listed.split(","))
    return header


def _add_parts(package: str, beside: PurePosixPath, names: Sequence[str], parts: dict[str, str]) -> None:
    """Add the texts of the named parts to ``parts``, each after the parts that it uses itself.

    A part is looked up in the folder ``beside``, and otherwise in this package.
    """
    for name in names:
        try:
            text = _source(package, f"{beside}/{name}")
        except OSError:
            text = _source(__package__, f"parts/{name}")
        _add_parts(package, beside, _header(name, text)["uses"], parts)
        parts[name] = text


def _source(package: str, name: str) -> str:
    content = get_data(package, f"{name}.lua")
    assert content is not None, f"the loader of the package {package} gives no files"
    return content.decode()
