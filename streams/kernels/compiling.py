"""How kernels are compiled: entry points from Python, functions that only kernels call, and inlined functions.

Only a ``kernel`` is stored on disk, together with all functions that it calls. None of these functions counts
references, because the caller of a kernel owns its arrays, and a kernel creates none. A ``routine`` has no entry point
from Python, and receives tables by reference (``streams.kernels.borrowing``).

A routine is optimised and compiled to machine code only as a part of kernels. Numba would do both for each function,
and again for each of its callers. ``docs/adr/0028-tables-by-reference.md`` has the measured savings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import codegen, compiler, compiler_machinery
from numba.core.dispatcher import Dispatcher
from numba.core.typed_passes import NopythonTypeInference

from streams.kernels.keeping import KeptKernel, is_compiling_off

Function = TypeVar("Function", bound=Callable[..., Any])
_generation: Any = codegen  # numba has few annotations
_compiler: Any = compiler
_machinery: Any = compiler_machinery


def kernel(function: Function) -> Function:
    """Compile a function for calls from Python. Decorator of the entry points of kernels.

    The function is compiled at its first call, stored for later processes, and run without the GIL.
    """
    compiled: Any = njit(**_WITHOUT_COUNTS)(function)
    if isinstance(compiled, Dispatcher):  # with NUMBA_DISABLE_JIT the function is unchanged
        compiled._cache = KeptKernel(function)  # type: ignore[attr-defined] # where cache=True puts numba's own
        compiled._compilation_chain_init_hook = _without_extensions  # type: ignore[attr-defined]
    return cast(Function, compiled)


def routine(function: Function) -> Function:
    """Make a function callable by kernels only. LLVM decides whether to inline it."""
    return _routine(function, forceinline=False, pipeline_class=_RoutineCompiler)


def inlined(function: Function) -> Function:
    """Make a function a routine whose machine code is inlined into all its callers. It is typed only once."""
    return _routine(function, forceinline=True, pipeline_class=_RoutineCompiler)


def apart(function: Function) -> Function:
    """Make a function a routine that is never inlined. Callers stay short if rarely executed code is set apart."""
    return _routine(function, forceinline=False, pipeline_class=_ApartCompiler)


class Routine:
    """A function that only kernels call. Its numba dispatcher is created when a kernel that calls it is compiled."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func = function
        self._options = options
        self._dispatcher: Any = None

    @property
    def _numba_type_(self) -> Any:
        """The type that numba assigns to this object when a kernel refers to it."""
        if self._dispatcher is None:
            self._dispatcher = njit(**self._options, **_OF_KERNELS_ONLY)(self.py_func)
        return self._dispatcher._numba_type_


def _routine(function: Function, **options: Any) -> Function:
    return function if is_compiling_off() else cast(Function, Routine(function, options))


def _without_extensions() -> None:
    """Load no extensions of numba.

    Kernels need none, and numba would search the metadata of all installed packages for them.
    """


class _Draft(_generation.JITCodeLibrary):  # type: ignore[misc]
    """The unoptimised code of a routine. It is linked into kernels and never run by itself."""

    def _optimize_final_module(self) -> None:
        """Do nothing, because the kernel that links this code is optimised as a whole."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """Return 0 as the address, because a draft has no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """The code generator. After ``finalize``, a substitute without effect, because a draft gets no machine code."""
        return _NoEnvironment() if self._finalized else self._codegen


class _DraftApart(_Draft):
    def add_ir_module(self, module: Any) -> None:
        for function in module.functions:
            if function.blocks:
                function.attributes.add("noinline")
        super().add_ir_module(module)


class _NoEnvironment:
    """A substitute for numba's variable with the Python objects of a function, as routines use no Python objects."""

    def set_env(self, _name: str, _objects: Any) -> None:
        """Do nothing."""


@_machinery.register_pass(mutates_CFG=False, analysis_only=False)
class _DraftOnly(_machinery.FunctionPass):  # type: ignore[misc]
    """The compiler pass that collects the generated code of a routine in a ``_Draft``."""

    _name = "forestall_draft"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = state.pipeline.library(state.targetctx.codegen(), state.func_id.func_qualname)
        return False


class _Options(_compiler.Flags):  # type: ignore[misc]
    """Compiler options with a fast comparison. Numba compares options whenever it types a call."""

    def __eq__(self, other: Any) -> bool:
        is_known = isinstance(other, _compiler.Flags)
        return is_known and bool(self._values == other._values or self.values() == other.values())

    def __hash__(self) -> int:
        return 0  # numba's own hash is also a constant, but slow


class _RoutineCompiler(_compiler.CompilerBase):  # type: ignore[misc]
    """Numba's compiler without the optimisation of the code."""

    library: type[_Draft] = _Draft

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.state.flags = _Options(self.state.flags)

    def define_pipelines(self) -> list[Any]:
        passes = _compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_DraftOnly, NopythonTypeInference)
        passes.finalize()
        return [passes]


class _ApartCompiler(_RoutineCompiler):
    library = _DraftApart


# Without an explicit ``forceinline``, numba uses the one of the first caller that it compiles.
_WITHOUT_COUNTS: dict[str, Any] = {"nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
_OF_KERNELS_ONLY: dict[str, Any] = {**_WITHOUT_COUNTS, "no_cpython_wrapper": True}
