"""The API's operations as methods of a client.

The operations are read from a table that is generated from the API's description. ``resources.pyi`` declares the same
methods with types. Both clients share this implementation, because a method returns the result of the client's own
``send``, ``find``, ``pages`` or ``live``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from service.client.calls import Call, part

_JSON = "application/json"
_WALKING = {"pages": ("after", "most", "on_gap", "on_more"), "live": ("after", "on_gap"), "call": (), "find": ()}


@cache
def operation_table() -> Mapping[str, Mapping[str, Any]]:
    """Read the table of operations, which has the operations of each resource by name."""
    table: dict[str, dict[str, Any]] = orjson.loads(Path(__file__).with_name("operations.json").read_bytes())
    return table


class Resources:
    """The API's resources as attributes of a client, and methods for requests to any path."""

    request: Callable[..., Any]

    def get(self, path: str, **query: Any) -> Any:
        """GET a path, and return the content of the answer."""
        return self.request("GET", path, query=query)

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        """POST to a path, and return the content of the answer.

        A body of bytes or text is sent unchanged, any other value as JSON.
        """
        return self.request("POST", path, body=body, query=query)

    def put(self, path: str, body: Any = None, **query: Any) -> Any:
        """PUT to a path, and return the content of the answer. The body is sent as in ``post``."""
        return self.request("PUT", path, body=body, query=query)

    def patch(self, path: str, body: Any = None, **query: Any) -> Any:
        """PATCH a path, and return the content of the answer. The body is sent as in ``post``."""
        return self.request("PATCH", path, body=body, query=query)

    def delete(self, path: str, **query: Any) -> Any:
        """DELETE a path, and return the content of the answer."""
        return self.request("DELETE", path, query=query)

    def __getattr__(self, name: str) -> Resource:
        if name.startswith("_") or name not in operation_table():
            raise AttributeError(
                f"{type(self).__name__} has no {name!r}; its resources are {_listed(operation_table())}"
            )
        return Resource(self, name, operation_table()[name])

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *operation_table()})


AsyncResources = Resources


class Resource:
    """The operations of one resource, as methods."""

    def __init__(self, client: Any, name: str, operations: Mapping[str, Any]) -> None:
        self._client, self._name, self._operations = client, name, operations

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in self._operations:
            raise AttributeError(f"{self._name} has no operation {name!r}, but {_listed(self._operations)}")
        return Operation(self._client, f"{self._name}.{name}", self._operations[name])

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._operations})


class Operation:
    """An operation of the API as a callable.

    Path parameters and the body are passed by position or by name, and options by name.
    """

    def __init__(self, client: Any, name: str, entry: Mapping[str, Any]) -> None:
        self._client, self._name, self._entry = client, name, entry
        self.__doc__ = f"{entry['summary']}: {entry['method']} {entry['path']}."

    def __call__(self, *values: Any, **options: Any) -> Any:
        entry = self._entry
        arguments = self._arguments(values, options)
        path = entry["path"].format_map({name: part(str(arguments.pop(name))) for name in entry.get("arguments", ())})
        query = {wire: arguments.pop(name, None) for name, wire in entry.get("query", {}).items()}
        kind = entry["kind"]
        if kind in ("pages", "live", "find"):
            return getattr(self._client, kind)(path, **arguments, **query)
        body = arguments.pop("body", None)
        headers = {
            wire: arguments[name] for name, wire in entry.get("headers", {}).items() if arguments.get(name) is not None
        }
        if (form := self._form(body, arguments.get("media_type"))) is not None:
            headers["Content-Type"] = form
        return self._client.send(Call(method=entry["method"], path=path, query=query, body=body, headers=headers))

    def _arguments(self, values: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        entry = self._entry
        positional = [*entry.get("arguments", ()), *(["body"] if entry.get("forms") else [])]
        if len(values) > len(positional):
            raise TypeError(f"{self._name} takes {_listed(positional)} by position, and {len(values)} were given")
        by_position = dict(zip(positional, values, strict=False))
        accepted = {*positional, *entry.get("query", {}), *entry.get("headers", {}), *_WALKING[entry["kind"]]}
        accepted |= {"media_type"} if len(entry.get("forms", ())) > 1 else set()
        if unknown := options.keys() - accepted:
            raise TypeError(f"{self._name} has no argument {_listed(sorted(unknown))}, but {_listed(sorted(accepted))}")
        if twice := options.keys() & by_position.keys():
            raise TypeError(f"{self._name} was given {_listed(sorted(twice))} twice")
        arguments = {**by_position, **options}
        needed = [*entry.get("arguments", ()), *(["body"] if entry.get("body") else []), *entry.get("required", ())]
        if missing := [name for name in needed if arguments.get(name) is None]:
            raise TypeError(f"{self._name} needs {_listed(missing)}")
        return arguments

    def _form(self, body: Any, media_type: str | None) -> str | None:
        if body is None or media_type is not None:
            return media_type
        forms = self._entry["forms"]
        if not isinstance(body, bytes | str):
            return _JSON if _JSON in forms else str(forms[0])
        if len(forms) > 1:
            raise TypeError(f"{self._name} needs the media_type of its body: {_listed(forms)}")
        return str(forms[0])


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
