"""Where the events of an input of a join come in."""

from __future__ import annotations

from streams import Input, StreamDeclaration, places_of


def source_of(stream: str, key: str | None, declaration: StreamDeclaration) -> tuple[Input, list[str] | None]:
    """Where an input's events come in, and the path of a key that is none of the stream's: then they change shards.

    Args:
        stream: Its name.
        key: As the document of a join names it; None: the correlation key.
        declaration: Of the stream.
    """
    if key is None or {key} == set(places_of(declaration.key)):
        return Input(stream), None
    for name, form in declaration.keys.items():
        if key == name or {key} == set(places_of(form)):
            return Input(stream, name), None
    return Input(stream), key.removeprefix("data.").split(".")
