"""Parses the YAML or JSON text of models and mappings into YAML nodes, within limits of size."""

from __future__ import annotations

import math

import yaml

from streams import UnreadableText, decoded_text, line_of, read_document
from workflows.errors import ModelRefused

MAX_BYTES = 1_000_000
MAX_VALUES = 250_000  # keys and values; a tree with 10,000 nodes, the limit, has about 50,000


def read_node(content: bytes | str) -> yaml.Node:
    """Parse a YAML or JSON text and return its root node."""
    try:
        return read_document(decoded_text(content, MAX_BYTES), MAX_VALUES).root
    except UnreadableText as error:
        raise ModelRefused([(f"line {line}" if line else "", message) for line, message in error.problems]) from error


def keys_of(node: yaml.Node) -> list[str]:
    """Return the keys of a mapping node. Other nodes have no keys."""
    return [key.value for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []


def number_of(node: yaml.Node) -> float | None:
    """Return the finite number of a scalar that is written without quotes, or None for any other node."""
    try:
        number = float(node.value) if isinstance(node, yaml.ScalarNode) and not node.style else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def place_of(node: yaml.Node, path: str = "") -> str:
    """Return the place of a node in words, such as ``tree.sequence[2].xor (line 7)``.

    Without a path, only the line is named.
    """
    line = line_of(node)
    if line is None:
        return path
    return f"{path} (line {line})" if path else f"line {line}"
