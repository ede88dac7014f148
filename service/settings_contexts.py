"""Contexts: the services that a user calls, each with a name, in a file in the user's configuration folder.

The file contains addresses, and the names of files with API keys, but no keys. A key is sent only to the address of its
own context.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from service.errors import SettingsInvalid
from streams import did_you_mean

_FILE = Path("forestall", "contexts.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A service that a user calls: its address, and the path of a file with an API key.

    The path is empty if there is no such file.
    """

    url: str
    api_key_file: str = ""

    def api_key(self) -> str | None:
        """Read the API key from its file, or return None if the context names no file."""
        if not self.api_key_file:
            return None
        try:
            return Path(self.api_key_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsInvalid(f"the file of the API key, {self.api_key_file}, cannot be read: {error}") from error


@dataclass(slots=True, kw_only=True)
class Contexts:
    """All contexts of a user. ``current`` is the name of the context that commands call, or empty if none is chosen."""

    current: str = ""
    named: dict[str, Context] = field(default_factory=dict)

    def get(self, name: str) -> Context:
        """Return a context by name. Raises ``SettingsInvalid`` if it does not exist."""
        if name not in self.named:
            hint = f"; there are {', '.join(self.named)}" if self.named else "; add one with 'forestall context add'"
            raise SettingsInvalid(f"there is no context {name!r}{did_you_mean(name, list(self.named))}{hint}")
        return self.named[name]

    def save(self) -> None:
        """Write the file so that only its user can read it."""
        path = contexts_file()
        addresses = {
            name: {"url": context.url, "api_key_file": context.api_key_file} for name, context in self.named.items()
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(".new")
            draft.touch(mode=0o600)
            draft.write_bytes(
                orjson.dumps({"current": self.current, "contexts": addresses}, option=orjson.OPT_INDENT_2)
            )
            draft.replace(path)
        except OSError as error:
            raise SettingsInvalid(f"{path} cannot be written: {error}") from error


def contexts_file() -> Path:
    """Return the path of the contexts file, below ``XDG_CONFIG_HOME`` or, by default, ``~/.config``."""
    # house: allow environment: the user's configuration folder is no setting of the service
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / _FILE


def load_contexts() -> Contexts:
    """Read the user's contexts. Without a file, there are none."""
    path = contexts_file()
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise SettingsInvalid(f"{path} cannot be read: {error}") from error
    try:
        document: Any = orjson.loads(content)
        return Contexts(
            current=document["current"],
            named={name: Context(**context) for name, context in document["contexts"].items()},
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise SettingsInvalid(f"{path} is not a file of contexts ({error}); correct or remove it") from error


def current_context() -> Context | None:
    """Return the context that commands call, or None if the user has not chosen one."""
    contexts = load_contexts()
    return contexts.get(contexts.current) if contexts.current else None
