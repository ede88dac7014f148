"""Templates, which convert the usual body of a delivery to the JSON form that a receiver requires.

A placeholder ``{{path.to.field}}`` in a string is replaced by the member of the body at this path. A number in the path
is the index of an item of a list.

Templates have no code, filters or attributes. Values are inserted into parsed JSON, not into text, and placeholders in
values are not replaced. Therefore the result is always valid JSON.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import orjson

from service.errors import WebhookRefused

MOST_TEMPLATE_BYTES = 16_384
MOST_BODY_BYTES = 1_000_000

_MOST_DEPTH = 12
_MOST_PLACES = 200
_PLACE = re.compile(r"\{\{ *([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*) *\}\}")


class BodyTooLong(ValueError):
    """The error for a filled template that exceeds the maximum size of a body."""


def check_template(template: Mapping[str, Any], members: Collection[str]) -> None:
    """Raise ``WebhookRefused`` if a template is too large or too deep, or has too many or unknown placeholders.

    The path in a placeholder must start with one of ``members``.
    """
    if not _depth_is_bounded(template, _MOST_DEPTH):
        raise _refused(f"the template is more than {_MOST_DEPTH} levels deep")
    try:
        size = len(orjson.dumps(template))
    except orjson.JSONEncodeError as error:
        raise _refused(f"the template cannot be sent: {error}") from error
    if size > MOST_TEMPLATE_BYTES:
        raise _refused(f"the template has {size} bytes; at most {MOST_TEMPLATE_BYTES} are allowed")
    paths = [path for text in _texts(template) for path in _places_of(text)]
    if len(paths) > _MOST_PLACES:
        raise _refused(f"the template has {len(paths)} placeholders; at most {_MOST_PLACES} are allowed")
    if unknown_paths := sorted({path for path in paths if path.partition(".")[0] not in members}):
        raise _refused(f"bodies do not have {', '.join(unknown_paths)}; their members are {', '.join(sorted(members))}")


def fill(template: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
    """Replace the placeholders in a template by members of the body, and return the result as JSON text.

    A string that consists of one placeholder becomes the member itself, of any type. A missing member becomes null. In
    a longer string, a text is inserted unchanged, and any other value as JSON text. Nothing is inserted for null or for
    a missing member. If the result is longer than ``MOST_BODY_BYTES``, raise ``BodyTooLong``.
    """
    bytes_left = [MOST_BODY_BYTES]
    text = orjson.dumps(_filled(template, body, bytes_left))
    if len(text) > MOST_BODY_BYTES:
        raise _too_long()
    return text


def _filled(part: Any, body: Mapping[str, Any], bytes_left: list[int]) -> Any:
    if isinstance(part, Mapping):
        return {name: _filled(value, body, bytes_left) for name, value in part.items()}
    if isinstance(part, list):
        return [_filled(value, body, bytes_left) for value in part]
    if not isinstance(part, str):
        return part
    if whole := _PLACE.fullmatch(part):
        member = _member(body, whole[1])
        _spend(bytes_left, member if isinstance(member, str) else orjson.dumps(member))
        return member
    return _PLACE.sub(lambda place: _spend(bytes_left, as_text(_member(body, place[1]))), part)


def _spend(bytes_left: list[int], text: str | bytes) -> Any:
    bytes_left[0] -= len(text)
    if bytes_left[0] < 0:
        raise _too_long()
    return text


def _too_long() -> BodyTooLong:
    return BodyTooLong(f"the template makes a body of more than {MOST_BODY_BYTES} bytes")


def _member(body: Any, path: str) -> Any:
    for name in path.split("."):
        if isinstance(body, Mapping):
            body = body.get(name)
        elif isinstance(body, list) and name.isdecimal() and len(name) < 7 and int(name) < len(body):
            body = body[int(name)]
        else:
            return None
    return body


def as_text(value: Any) -> str:
    """Return a text unchanged, an empty text for null, and any other member as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _places_of(text: str) -> list[str]:
    paths: list[str] = _PLACE.findall(text)
    remainder = _PLACE.sub("", text)
    if "{{" in remainder or "}}" in remainder:
        raise _refused(f"{text[:100]!r} has a malformed placeholder; write it as {{{{path.to.field}}}}")
    return paths


def _texts(part: Any) -> Iterator[str]:
    """Yield all strings of a template. Raise ``WebhookRefused`` if the name of a member has a placeholder."""
    if isinstance(part, Mapping):
        for name, value in part.items():
            if "{{" in name:
                raise _refused(f"the name {name[:100]!r} has a placeholder, which is only filled in values")
            yield from _texts(value)
    elif isinstance(part, list):
        for value in part:
            yield from _texts(value)
    elif isinstance(part, str):
        yield part


def _depth_is_bounded(part: Any, levels: int) -> bool:
    if not isinstance(part, Mapping | list):
        return True
    values = part.values() if isinstance(part, Mapping) else part
    return levels > 0 and all(_depth_is_bounded(value, levels - 1) for value in values)


def _refused(message: str) -> WebhookRefused:
    return WebhookRefused(message, field="template")
