"""Messages of the API in the words of the command line: commands in the place of its operations."""

from __future__ import annotations

import re
from collections.abc import Set

_OPERATION = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE) (?:https?://[^/\s]+)?/v1/([a-z-]+)(?:/([^\s/;,)]+))?(?![\w/{])")
_OF_ALL = {"GET": "list", "POST": "add"}
_OF_ONE = {"GET": "show", "PUT": "add", "PATCH": "change", "DELETE": "delete"}
_REPLACED = frozenset(("patterns", "joins", "aggregates"))  # by a command 'change'
_UNCHANGED = frozenset(("workflows", "event-types", "keys", "tables"))  # without one


def as_commands(message: str, groups: Set[str]) -> str:
    """A message with commands in the place of operations; ``groups``: the groups of commands."""

    def command(found: re.Match[str]) -> str:
        method, group, name = found.groups()
        verb = (_OF_ALL if name is None else _OF_ONE).get(method)
        if method == "PUT" and group in _REPLACED:
            verb = "change"
        if group not in groups or verb is None or (verb == "change" and group in _UNCHANGED):
            return found[0]
        return f"forestall {group} {verb}{'' if name is None else f' {name}'}"

    return _OPERATION.sub(command, message)
