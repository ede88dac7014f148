"""Requests that load rows of tables from memory into the cache before the rows are read.

A kernel that follows references from row to row waits for memory at each step. If it requests the row of its next step
and follows other references meanwhile, the row is in the cache when it is read.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

_words: Any = cgutils  # numba has few annotations
_code = _words.ir
_NAME = "llvm.prefetch.p0i8"
_READING, _KEPT_LONG, _DATA = 0, 3, 1  # the operands of LLVM's instruction


class Prefetch(Protocol):
    """The type of ``prefetch``: requests that the processor loads the beginning of a row of a table.

    The row must exist.
    """

    def __call__(self, table: NDArray[Any], row: np.int64, /) -> None: ...


def _prefetch(_typing_context: Any, table: Any, row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, number = signature.args[0], _words.int32_t
        array = context.make_array(kind)(context, builder, arguments[0])
        places = [arguments[1], *(context.get_constant(types.intp, 0) for _ in range(kind.ndim - 1))]
        address = builder.bitcast(_words.get_item_pointer(context, builder, kind, array, places), _words.voidptr_t)
        form = _code.FunctionType(_code.VoidType(), [_words.voidptr_t, number, number, number])
        request = _words.get_or_insert_function(builder.module, form, _NAME)
        builder.call(request, [address, *(number(operand) for operand in (_READING, _KEPT_LONG, _DATA))])
        return context.get_dummy_value()

    return types.void(table, types.intp), generate


def nothing(_table: NDArray[Any], _row: np.int64) -> None:
    """Do nothing, because an interpreted kernel reads a row only when it needs it."""


prefetch: Prefetch = nothing if getattr(config, "DISABLE_JIT", 0) else cast(Prefetch, intrinsic(_prefetch))
"""Requests a row of a table that will be read a few steps later."""
