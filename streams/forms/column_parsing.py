"""Reads batches of well-formed event objects by columns, with the same result as one by one, but much faster.

Nothing is rejected here. If any object is unusual, the result is None. The caller then reads the objects one by one,
which reports the fault of each invalid object, and accepts objects that are unusual but valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from itertools import chain
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streams.batch import EventBatch
from streams.declaration import StreamDeclaration
from streams.errors import EventRejected
from streams.forms.cloudevents import SPEC_VERSION
from streams.forms.extent import check_extent, has_long_integer
from streams.forms.parsing import MISSING
from streams.keys import KeyForm, require_place
from streams.time_forms import TimeForm, microseconds_of
from streams.timestamps import EARLIEST_US, LATEST_US

_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$"
_LEAVES = frozenset({str, int, float, bool, type(None)})
_KNOWN = frozenset({"id", "type", "time", "key", "subject", "data", "source", "specversion", "datacontenttype"})
_NO_NUMBERS = frozenset({str, type(None)})
_CLOUDEVENT_TYPES = frozenset({"application/json", None})

_Objects = Sequence[Mapping[str, Any]]


def parse_columns(objects: Sequence[object], declaration: StreamDeclaration) -> EventBatch | None:
    """Read a batch of event objects that are all well-formed CloudEvents, or all well-formed plain objects.

    The objects are decoded JSON, one per event, in their order. The events equal the results of ``parse_cloudevent`` or
    ``parse_plain`` after ``check_extent``. Return None if any object is unusual, so that the caller reads one by one.
    """
    if set(map(type, objects)) != {dict}:
        return None
    mappings = cast("_Objects", objects)
    versions = {value.get("specversion", MISSING) is MISSING for value in mappings}
    if len(versions) != 1:
        return None
    try:
        return _plain(mappings, declaration) if True in versions else _cloudevents(mappings, declaration)
    except (EventRejected, _Unusual, UnicodeEncodeError, TypeError, OverflowError, pa.ArrowInvalid):
        return None


class _Unusual(Exception):
    """The columns cannot represent an object. The caller then reads all objects one by one, and may find them valid."""


def _plain(objects: _Objects, declaration: StreamDeclaration) -> EventBatch:
    mapping = declaration.mapping
    types = _require_texts(_at(objects, mapping.type))
    keys = _keys(objects, types, declaration.key, _plain_keys)
    data = list(objects) if mapping.data is None else _at(objects, mapping.data)
    times = _at(objects, mapping.time)
    if mapping.clock != TimeForm() or not isinstance(mapping.id, str):
        raise _Unusual
    used = {mapping.id, mapping.type, mapping.time, "data", *_always_read(declaration.key)}
    is_known = mapping.data == "data" and _is_known(objects, used)
    ids = _names(_at(objects, mapping.id))
    return _batch(objects, (ids, types, times, _names(keys), data), declaration, is_known=is_known)


def _cloudevents(objects: _Objects, declaration: StreamDeclaration) -> EventBatch:
    for value in objects:
        if value["specversion"] != SPEC_VERSION or "data_base64" in value:
            raise _Unusual
        if value.get("datacontenttype") not in _CLOUDEVENT_TYPES:
            raise _Unusual
    _require_texts([value.get("source") for value in objects])
    times = [value.get("time") for value in objects]
    ids = _require_texts([value.get("id") for value in objects])
    if set(map(type, times)) != {str}:
        raise _Unusual
    types = _require_texts([value.get("type") for value in objects])
    keys = _names(_keys(objects, types, declaration.key, _at))
    columns = (ids, types, times, keys, [value.get("data") for value in objects])
    is_known = _is_known(objects, _KNOWN - {"key", "subject"} | _always_read(declaration.key))
    return _batch(objects, columns, declaration, is_known=is_known)


def _batch(
    objects: _Objects,
    columns: tuple[list[str], list[Any], list[Any], list[str], list[Any]],
    declaration: StreamDeclaration,
    *,
    is_known: bool,
) -> EventBatch:
    ids, types, times, keys, data = columns
    distinct = set(types)
    if declaration.event_types and not distinct.issubset(declaration.event_types):
        raise _Unusual
    if set(map(type, data)) != {dict}:
        data = [_attributes(value) for value in data]
    if not is_known or not _LEAVES.issuperset(map(type, chain.from_iterable(map(dict.values, data)))):
        for value in objects:
            check_extent(value)
    texts = list(map(orjson.dumps, data))
    if has_long_integer(b" ".join(texts)):
        for value in objects:
            check_extent(value)
    return EventBatch.from_columns(ids, types, _times_us(times), keys, texts)


def _is_known(objects: _Objects, used: Set[str]) -> bool:
    """Check that objects have no unknown members. Members that are not in ``used`` must be texts or null."""
    members = set(chain.from_iterable(objects))
    return _KNOWN.issuperset(members) and all(
        _NO_NUMBERS.issuperset(type(value.get(name)) for value in objects) for name in members - used
    )


def _keys(objects: _Objects, types: list[str], key: KeyForm, read: Callable[[_Objects, str], list[Any]]) -> list[Any]:
    """Return the key of each object, read from the path for its event type.

    ``read`` returns the values of objects at a path.
    """
    if not isinstance(key, Mapping):
        return read(objects, key)
    places = {name: require_place(key, name) for name in set(types)}
    keys: list[Any] = [MISSING] * len(objects)
    for path in set(places.values()):
        rows = [row for row, name in enumerate(types) if places[name] == path]
        for row, value in zip(rows, read([objects[row] for row in rows], path), strict=True):
            keys[row] = value
    return keys


def _plain_keys(objects: _Objects, path: str) -> list[Any]:
    if path == "subject":
        return [value["subject"] if "subject" in value else value.get("key", MISSING) for value in objects]
    return _at(objects, path)


def _always_read(key: KeyForm) -> set[str]:
    return set() if isinstance(key, Mapping) else {key}


def _at(objects: _Objects, path: str) -> list[Any]:
    values: list[Any] = list(objects)
    for place, name in enumerate(path.split(".")):
        if place and set(map(type, values)) != {dict}:
            raise _Unusual
        values = [value.get(name, MISSING) for value in values]
    return values


def _require_texts(values: list[Any]) -> list[str]:
    if set(map(type, values)) != {str} or not all(values):
        raise _Unusual
    return values


def _names(values: list[Any]) -> list[str]:
    """Check ids or keys, which are non-empty texts or integers, and return them as texts."""
    kinds = set(map(type, values))
    if int in kinds and kinds <= {int, str}:
        check_extent(values)
        values = list(map(str, values))
    return _require_texts(values)


def _attributes(value: object) -> Mapping[str, Any]:
    if value is None or value is MISSING:
        return {}
    if type(value) is not dict:
        raise _Unusual
    return value


def _times_us(values: list[Any]) -> NDArray[np.int64]:
    """Convert RFC 3339 texts or integers to microseconds. Raises ``_Unusual`` for rare forms such as leap seconds."""
    kinds = set(map(type, values))
    if kinds == {int}:
        times_us = microseconds_of(np.array(values, np.int64))
    elif kinds == {str}:
        texts = pa.array(values, pa.string())
        if not pc.all(pc.match_substring_regex(texts, _TIME)).as_py():
            raise _Unusual
        times_us = texts.cast(pa.timestamp("us", tz="UTC")).view(pa.int64()).to_numpy()
    else:
        raise _Unusual
    if not (times_us.min() >= EARLIEST_US and times_us.max() <= LATEST_US):
        raise _Unusual
    return times_us
