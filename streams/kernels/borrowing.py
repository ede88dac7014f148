"""Arrays without reference counts, inside a kernel."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, cast

from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

Held = TypeVar("Held")


class Borrow(Protocol):
    """An array, or a tuple of arrays, as it is, without its owner."""

    def __call__(self, held: Held, /) -> Held: ...


def _borrow(_typing_context: Any, held: Any) -> Any:
    def strip(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            for place, part in enumerate(cast(Any, kind).types):
                stripped = strip(context, builder, part, builder.extract_value(value, place))
                value = builder.insert_value(value, stripped, place)
            return value
        if not isinstance(kind, types.Array):
            return value
        array = context.make_array(kind)(context, builder, value)
        nothing: Any = cgutils.get_null_value
        array.meminfo = nothing(array.meminfo.type)
        array.parent = nothing(array.parent.type)
        return array._getvalue()

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (kind,), (value,) = signature.args, arguments
        return strip(context, builder, kind, value)

    return held(held), generate


def _as_it_is(held: Held) -> Held:
    return held


borrowed: Borrow = _as_it_is if getattr(config, "DISABLE_JIT", 0) else cast(Borrow, intrinsic(_borrow))
"""For a call whose caller holds the arrays. Reading an array from a tuple costs two atomic counts, more than most of
what a kernel does with it; an array without an owner has nothing to count."""
