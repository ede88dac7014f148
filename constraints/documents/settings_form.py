"""Reads and writes the settings of a constraint set: all problems are reported, and defaults are not written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from constraints.documents.name_form import Misread, NameReader, PlacedProblem, checked_type, excerpt, looks_like_symbol
from constraints.model import Settings
from nfa import OnViolation, Prune, Symbol
from streams import Bare

MAX_TYPES = 10_000
MAX_MONITOR_STATES = 1_000_000

_DEFAULT = Settings()
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "prune": tuple(Prune),
    "on_violation": tuple(OnViolation),
    "unknown_types": ("ignore", "deviate"),
    "completion": ("assumed", "not_assumed"),
    "beyond_cap": ("bit_tables", "leave_out"),
    "reopen": ("never", "new_transaction"),
}
_NAMES = tuple(field.name for field in fields(Settings))


def read_settings(value: object, names: NameReader) -> tuple[Settings, list[PlacedProblem]]:
    """Read the settings, and list problems with their places.

    If there are problems, the settings are the defaults.
    """
    if not isinstance(value, Mapping):
        return _DEFAULT, [((), f"settings are a mapping, such as {{prune: state}}; got {excerpt(value)}")]
    problems: list[PlacedProblem] = []
    read: dict[str, Any] = {}
    for key, setting in value.items():
        if key not in _NAMES:
            problems.append(((str(key),), f"{excerpt(key)} is not a setting; use one of {', '.join(_NAMES)}"))
        elif key == "frequencies":
            read[key] = _frequencies(setting, names, problems)
        elif key == "types":
            read[key] = _types(setting, problems)
        else:
            try:
                read[key] = _states(setting) if key == "max_monitor_states" else _choice(str(key), setting)
            except Misread as problem:
                problems.append(((str(key),), str(problem)))
    return (_DEFAULT if problems else Settings(**read)), problems


def notices_of(settings: Settings) -> tuple[str, ...]:
    """Return notices about settings that may lose matches, and about a setting without effect."""
    notices = []
    if settings.on_violation is OnViolation.IGNORE:
        notices.append(
            "on_violation: ignore continues pruning traces that broke a constraint, so matches in them may be lost "
            "silently; report keeps them"
        )
    if settings.on_violation is OnViolation.FAIL_TRACE:
        notices.append(
            "on_violation: fail_trace looks for nothing more in a trace that broke a constraint, so later matches in "
            "that trace are not reported; use report to keep them"
        )
    if settings.types and settings.unknown_types == "ignore":
        notices.append("types has no effect unless unknown_types is deviate")
    return tuple(notices)


def written_settings(settings: Settings, symbols: Mapping[str, Symbol]) -> dict[str, object]:
    """Return the settings that differ from the defaults, as plain JSON values that ``read_settings`` reads."""
    written: dict[str, object] = {
        name: str(getattr(settings, name)) for name in _CHOICES if getattr(settings, name) != getattr(_DEFAULT, name)
    }
    if settings.types:
        written["types"] = sorted(settings.types)
    if settings.frequencies:
        written["frequencies"] = {
            _written_key(name, symbols): share for name, share in sorted(settings.frequencies.items())
        }
    if settings.max_monitor_states != _DEFAULT.max_monitor_states:
        written["max_monitor_states"] = settings.max_monitor_states
    return written


def _choice(key: str, value: object) -> object:
    word = "off" if value is False else str(value)  # YAML reads a bare ``off`` as a truth value
    if word not in _CHOICES[key]:
        raise Misread(f"{key} is one of {', '.join(_CHOICES[key])}; got {excerpt(value)}")
    makers: Mapping[str, Callable[[str], object]] = {"prune": Prune, "on_violation": OnViolation}
    return makers.get(key, str)(word)


def _states(value: object) -> int:
    number = _number(value)
    if number is None or not number.is_integer() or not 1 <= number <= MAX_MONITOR_STATES:
        raise Misread(f"max_monitor_states is a whole number from 1 to {MAX_MONITOR_STATES}; got {excerpt(value)}")
    return int(number)


def _types(value: object, problems: list[PlacedProblem]) -> frozenset[str]:
    if not isinstance(value, list) or len(value) > MAX_TYPES:
        message = f"types is a list of at most {MAX_TYPES} event types, such as [A, B]; got {excerpt(value)}"
        problems.append((("types",), message))
        return frozenset()
    types = set()
    for index, entry in enumerate(value):
        try:
            types.add(checked_type(entry))
        except Misread as problem:
            problems.append((("types", index), str(problem)))
    return frozenset(types)


def _frequencies(value: object, names: NameReader, problems: list[PlacedProblem]) -> dict[str, float]:
    if not isinstance(value, Mapping):
        form = "frequencies go from names to the part of the traces that show them, such as {A: 0.2}"
        problems.append((("frequencies",), f"{form}; got {excerpt(value)}"))
        return {}
    frequencies: dict[str, float] = {}
    for key, share in value.items():
        try:
            is_quoted = isinstance(key, str) and len(key) > 2 and key[0] == key[-1] == "`"
            name = names.type(key[1:-1].replace("``", "`")) if is_quoted else names.name(key)
            number = _number(share)
            if number is None or not 0 <= number <= 1:
                raise Misread(f"a frequency is a number from 0 to 1; got {excerpt(share)}")
            if name in frequencies:
                raise Misread(f"the frequency of {excerpt(name)} is given twice; give it once")
            frequencies[name] = number
        except Misread as problem:
            problems.append((("frequencies", str(key)), str(problem)))
    return frequencies


def _number(value: object) -> float | None:
    number = value.value if isinstance(value, Bare) else value
    if isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < 2**53:
        return float(number)
    return None


def _written_key(name: str, symbols: Mapping[str, Symbol]) -> str:
    if name in symbols or not (looks_like_symbol(name) or name.startswith("`")):
        return name
    return "`" + name.replace("`", "``") + "`"
