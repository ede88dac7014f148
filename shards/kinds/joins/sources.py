"""The places at which the events of a join's inputs arrive."""

from __future__ import annotations

from streams import Input, StreamDeclaration, places_of

WAIT = "wait"
"""The name of the decider of joins with ``wait: auto``, which finishes keys of their inputs."""

KEYLESS = ".keyless"
"""Suffix of an operator's name: this operator of an input reads the events without a usable further key."""


def source_of(stream: str, key: str | None, declaration: StreamDeclaration) -> tuple[Input, list[str] | None]:
    """Return where an input's events arrive (stream and key), and the path of a key that the stream does not declare.

    ``key`` is the key in the join's document, or None for the correlation key. The path is None for a declared key. The
    log carries events with an undeclared key to other shards.
    """
    if key is None or {key} == set(places_of(declaration.key)):
        return Input(stream), None
    for name, form in declaration.keys.items():
        if key == name or {key} == set(places_of(form)):
            return Input(stream, name), None
    return Input(stream), key.removeprefix("data.").split(".")
