"""Settings from files: one TOML file with settings by name, and files that contain a single secret each."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from service.errors import SettingsInvalid
from streams import did_you_mean

PREFIX = "FORESTALL_"
CONFIG = f"{PREFIX}CONFIG"
SECRETS = ("api_key", "redis_url")

FILE_VARIABLES = frozenset({CONFIG, *(f"{PREFIX}{name.upper()}_FILE" for name in SECRETS)})
"""The environment variables that name files."""


def use_config(path: Path) -> None:
    """Read settings from a file, in this process and in the processes that it starts."""
    os.environ[CONFIG] = str(path.resolve())


def file_values(settings: type[BaseModel]) -> dict[str, Any]:
    """Return the settings from files, which environment variables override. Raises ``SettingsInvalid``."""
    values: dict[str, Any] = {}
    if path := _environment_value(CONFIG):
        values = _document(path)
        if faults := [f"{path}: {fault}" for fault in _unknown_names(values, settings, "")]:
            raise SettingsInvalid("settings cannot be used:\n  " + "\n  ".join(faults), faults=list(faults))
    for name in SECRETS:
        variable = PREFIX + name.upper()
        path = _environment_value(f"{variable}_FILE")
        # The variable overrides the file, because a parent process passes Redis's address in it.
        if not path or _environment_value(variable):
            continue
        values[name] = _text(path, f"{variable}_FILE").strip()
    return values


def _environment_value(variable: str) -> str | None:
    # house: allow environment: these variables name the files of settings
    return os.environ.get(variable)


def _document(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path, CONFIG))
    except tomllib.TOMLDecodeError as error:
        raise SettingsInvalid(f"{path} is not a TOML file: {error}") from error


def _text(path: str, variable: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{variable}: {path} cannot be read: {error}") from error


def _unknown_names(values: Mapping[str, Any], model: type[BaseModel], above: str) -> Iterator[str]:
    for name, value in values.items():
        field = model.model_fields.get(name)
        if field is None:
            yield f"{above}{name} is not a setting{did_you_mean(name, list(model.model_fields))}"
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel) and isinstance(value, dict):
            yield from _unknown_names(value, field.annotation, f"{above}{name}.")
