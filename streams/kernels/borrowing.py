"""Arrays without reference counts, and tables of arrays by reference, inside a kernel.

A table is a ``NamedTuple`` of arrays. If it is passed by value, each array takes seven machine words in every call, and
reading the array costs two atomic counts. ``borrowed`` leaves the words in the frame of the kernel that Python has
called, and passes their address. Reading an array of the table then reads only the words that are needed. So a table
costs one word per call and nothing per unused array, and compilation takes a quarter of the time.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, cast

from numba import config, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model

_words: Any = cgutils  # numba has few annotations
_lower_reading: Any = lower_getattr_generic
_TABLES = (types.NamedTuple, types.NamedUniTuple)  # a NamedUniTuple has columns of one type
Held = TypeVar("Held")


class Borrow(Protocol):
    """The type of ``borrowed``: returns an array without its owner, or a reference to a table of arrays.

    The result is valid until the caller returns.
    """

    def __call__(self, held: Held, /) -> Held: ...


class Reference(types.Type):
    """The numba type of a reference to a table of arrays.

    Its name is short, because names of compiled functions contain it.
    """

    def __init__(self, table: Any) -> None:
        self.table = table
        super().__init__(name=f"Reference({table.instance_class.__name__})")

    @property
    def key(self) -> Any:
        """The identity of the type. Tables with different arrays have different types.

        The key is numba's integer code of the table's type. A hash of the whole table type would be slow, because numba
        compares types very often during compilation.
        """
        return self.table._code


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Reference) -> None:
        address = manager[kind.table].get_value_type().as_pointer()
        super().__init__(manager, kind, address)  # type: ignore[no-untyped-call]


@infer_getattr
class _ReferenceAttributes(AttributeTemplate):
    key = Reference

    def generic_resolve(self, reference: Reference, name: str) -> Any:  # type: ignore[override]
        table = reference.table
        if name not in table.fields:
            return None
        part = table.types[table.fields.index(name)]
        return Reference(part) if isinstance(part, _TABLES) else part


@_lower_reading(Reference)
def _read(context: Any, builder: Any, kind: Reference, value: Any, name: str) -> Any:
    place = kind.table.fields.index(name)
    part, address = kind.table.types[place], _words.gep_inbounds(builder, value, 0, place)
    if isinstance(part, _TABLES):
        return address
    if not isinstance(part, types.Array):
        return builder.load(address)
    return _array_at(context, builder, part, address)


def _array_at(context: Any, builder: Any, kind: Any, address: Any) -> Any:
    """Load the fields of an array structure except its owner, each alone, so that the compiler can drop unused ones."""
    array = _words.get_null_value(address.type.pointee)
    for place, name in enumerate(context.data_model_manager[kind]._fields):
        if name in ("meminfo", "parent"):
            continue
        word = _words.gep_inbounds(builder, address, 0, place)
        if name not in ("shape", "strides"):
            array = builder.insert_value(array, builder.load(word), place)
            continue
        for axis in range(kind.ndim):
            size = builder.load(_words.gep_inbounds(builder, word, 0, axis))
            array = builder.insert_value(array, size, [place, axis])
    return array


def _borrow(_typing_context: Any, held: Any) -> Any:
    if isinstance(held, _TABLES):

        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return _words.alloca_once_value(builder, arguments[0])

        return Reference(held)(held), generate

    if not isinstance(held, (types.Array, Reference)):
        raise TypingError(f"an array or a table of arrays can be borrowed, not {held}")

    def strip(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        (value,) = arguments
        if isinstance(held, types.Array):
            array = context.make_array(held)(context, builder, value)
            array.meminfo = _words.get_null_value(array.meminfo.type)
            array.parent = _words.get_null_value(array.parent.type)
            value = array._getvalue()
        return value

    return held(held), strip


def _as_it_is(held: Held) -> Held:
    return held


borrowed: Borrow = _as_it_is if getattr(config, "DISABLE_JIT", 0) else cast(Borrow, intrinsic(_borrow))
"""Borrow an array or a table that the caller of a function owns. A borrowed argument is returned unchanged."""
