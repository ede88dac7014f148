"""Tables whose arrays are zero at first. A table is a named tuple or dataclass of annotated arrays."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

Table = TypeVar("Table")
Shape: TypeAlias = int | tuple[int, ...] | NDArray[Any]


def zeros_of(table: type[Table], length: int, **others: Shape) -> Table:
    """Create a table (a named tuple or dataclass of arrays) with arrays of ``length`` zeros.

    ``others`` has another shape, or the array itself, for some of the arrays by name.
    """
    kind: Any = table
    arrays = {}
    for name, element in _types_of(kind).items():
        shape = others.get(name, length)
        arrays[name] = shape if isinstance(shape, np.ndarray) else np.zeros(shape, element)
    return table(**arrays)


@cache
def _types_of(table: Any) -> Mapping[str, Any]:
    """Return the element type of each array of a table, from annotations such as ``NDArray[np.int32]``."""
    return {name: get_args(get_args(hint)[1])[0] for name, hint in get_type_hints(table).items()}
