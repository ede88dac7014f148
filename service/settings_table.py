"""The table of all settings, generated from the classes of the settings.

``python -m service.settings_table > docs/settings.md`` writes the table into the documentation.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from service.settings import PREFIX, Settings, given_variables
from service.settings_files import FILE_VARIABLES
from streams import did_you_mean

_HIDDEN = "set, not shown"
_SECRET_NAMES = re.compile(r"secret|password|token|key", re.IGNORECASE)
_DEPENDING = {  # defaults that depend on the machine
    "shards": "1 per core, at least 2",
    "spark_master": "`local[N]`, N half of the cores",
    "spark.worker_folder": "`forestall` in the folder for temporary files",
}
_KINDS: dict[Any, str] = {
    bool: "`true` or `false`",
    int: "whole number",
    float: "number",
    str: "text",
    Path: "path",
    SecretStr: "text, secret",
    dict: "JSON object",
    list: "JSON list",
    tuple: "JSON list",
    set: "JSON list",
    frozenset: "JSON list",
}
_OTHER_VARIABLES = {f"{PREFIX}{name}" for name in ("ROLE", "PUBLISH", "TAG")}  # for workers and the compose file
_HEAD = """\
# All settings

Every setting is an environment variable. This page is made from the classes that read them, and a test compares the
two. `forestall settings` prints the current values and their sources. A process that starts reports all invalid
settings at once. The settings of a group may also be given as one JSON object, as in
`FORESTALL_BATCH='{"max_entries": 32}'`; an empty variable counts as none.

`FORESTALL_CONFIG`, or `forestall serve --config FILE`, names a TOML file with the same names in small letters, groups
as tables (`[limits]`, `max_body_bytes = 1000000`); variables of the environment take precedence, and a name that is not
a setting is refused. `FORESTALL_API_KEY_FILE` and `FORESTALL_REDIS_URL_FILE` name files that hold the value, such as
secrets of containers.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """A setting, as one row of the table of all settings.

    ``group`` is the attribute of ``Settings`` that contains the setting, or empty. ``value`` is the current value, with
    secrets hidden, or None if no settings were given.
    """

    variable: str
    group: str
    kind: str
    default: str
    meaning: str
    value: str | None = None
    is_set: bool = False


def setting_rows(settings: Settings | None = None) -> list[SettingRow]:
    """Return all settings in the order of their classes, with their current values if ``settings`` is given."""
    return list(_rows(Settings, settings, ()))


def unknown_variables() -> list[str]:
    """Return a sentence for each environment variable that has the settings' prefix but is not a setting."""
    rows = setting_rows()
    variables = {row.variable for row in rows} | {PREFIX + row.group.upper() for row in rows if row.group}
    objects = tuple(f"{row.variable}__" for row in rows if row.kind == _KINDS[dict])
    return [
        f"{name} is not a setting and has no effect{did_you_mean(name, variables)}"
        for name in given_variables()
        if name not in variables | _OTHER_VARIABLES | FILE_VARIABLES and not name.startswith(objects)
    ]


def settings_page() -> str:
    """Return the text of ``docs/settings.md``."""
    lines = [_HEAD]
    group = None
    for row in sorted(setting_rows(), key=lambda row: row.group != ""):
        if row.group != group:
            group = row.group
            lines += [f"## {group.capitalize() if group else 'The service'}\n"]
            lines += ["| variable | may be | default | meaning |", "|---|---|---|---|"]
        cells = (f"`{row.variable}`", row.kind, row.default, row.meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return re.sub(r"(\|)\n(## )", r"\1\n\n\2", "\n".join(lines)) + "\n"


def _rows(model: type[BaseModel], values: BaseModel | None, above: tuple[str, ...]) -> Iterator[SettingRow]:
    meanings = _meanings(model)
    for name, field in model.model_fields.items():
        inner = field.annotation
        value = None if values is None else getattr(values, name)
        if inspect.isclass(inner) and issubclass(inner, BaseModel):
            yield from _rows(inner, value, (*above, name))
            continue
        path = (*above, name)
        yield SettingRow(
            variable=PREFIX + "__".join(path).upper(),
            group=above[0] if above else "",
            kind=_kind(field),
            default=_default(field, ".".join(path)),
            meaning=meanings[name],
            value=None if values is None else _display_text(value),
            is_set=values is not None and name in values.model_fields_set,
        )


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """Return the description of each attribute in a class's docstring, joined to one line."""
    text = inspect.getdoc(model) or ""
    meanings: dict[str, list[str]] = {}
    for line in text.partition("Attributes:\n")[2].splitlines():
        if begin := re.match(r" {4}(\w+): (.*)", line):
            last = meanings[begin[1]] = [begin[2]]
        elif line.strip():
            last.append(line.strip())
    return {name: " ".join(parts).replace("``", "`") for name, parts in meanings.items()}


def _kind(field: FieldInfo) -> str:
    annotation = field.annotation
    if get_origin(annotation) in (Union, types.UnionType):
        (annotation,) = [part for part in get_args(annotation) if part is not type(None)][:1]
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{choice}`" for choice in get_args(annotation))
    while get_args(annotation) and get_origin(annotation) not in _KINDS:  # unwraps Annotated
        field = FieldInfo.from_annotation(cast(Any, annotation))
        annotation = field.annotation
    word = _KINDS.get(get_origin(annotation) or annotation, str(annotation))
    bounds = {name: value for bound in field.metadata for name, value in _bounds(bound)}
    return ", ".join([word, *_range(bounds)])


def _bounds(bound: Any) -> Iterator[tuple[str, Any]]:
    for name in ("ge", "gt", "le", "lt"):
        if getattr(bound, name, None) is not None:
            yield name, getattr(bound, name)


def _range(bounds: dict[str, Any]) -> Iterator[str]:
    if "ge" in bounds and "le" in bounds:
        yield f"{bounds['ge']:,} to {bounds['le']:,}"
        return
    for name, words in {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}.items():
        if name in bounds:
            yield f"{words} {bounds[name]:,}"


def _default(field: FieldInfo, path: str) -> str:
    if path in _DEPENDING:
        return _DEPENDING[path]
    assert field.default_factory is None, f"{path}: say in words what the default depends on"
    value = field.default
    return "none" if value is None or value in ("", {}, (), []) else f"`{_display_text(value)}`"


def _display_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, SecretStr):
        return _HIDDEN
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return str({name: _HIDDEN if _SECRET_NAMES.search(name) else part for name, part in value.items()})
    return f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.stdout.write(settings_page())
