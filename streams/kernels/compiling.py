"""How kernels are compiled: those that Python calls, what only kernels call, and what disappears into its caller.

Only a ``kernel`` is kept on disk, with everything that it calls inside. None of them counts references: a kernel takes
arrays that its caller holds and makes none. A ``routine`` has no entry from Python either: it takes tables by reference
(``streams.kernels.borrowing``).
It is optimised and becomes machine code as a part of kernels only; numba would do both for each function and again for
each of its callers. What this saves was measured: ``docs/adr/0028-tables-by-reference.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import codegen, compiler, compiler_machinery
from numba.core.dispatcher import Dispatcher
from numba.core.typed_passes import NopythonTypeInference

from streams.kernels.keeping import KeptKernel

Function = TypeVar("Function", bound=Callable[..., Any])
_generation: Any = codegen  # numba has few annotations
_compiler: Any = compiler
_machinery: Any = compiler_machinery


def kernel(function: Function) -> Function:
    """What Python calls: compiled when it is first called, kept for later processes, without the interpreter's lock."""
    compiled: Any = njit(**_WITHOUT_COUNTS)(function)
    if isinstance(compiled, Dispatcher):  # NUMBA_DISABLE_JIT leaves the function as it is
        compiled._cache = KeptKernel(function)  # type: ignore[attr-defined] # where cache=True puts numba's own
    return cast(Function, compiled)


def routine(function: Function) -> Function:
    """What only kernels call; LLVM decides whether it becomes part of its callers."""
    compiled: Function = njit(forceinline=False, pipeline_class=_RoutineCompiler, **_OF_KERNELS_ONLY)(function)
    return compiled


def inlined(function: Function) -> Function:
    """A routine that is part of each of its callers once it is machine code; the compiler types it once."""
    compiled: Function = njit(forceinline=True, pipeline_class=_RoutineCompiler, **_OF_KERNELS_ONLY)(function)
    return compiled


def apart(function: Function) -> Function:
    """A routine that never becomes part of its callers: what is rare, so that the rest stays short and in registers."""
    compiled: Function = njit(forceinline=False, pipeline_class=_ApartCompiler, **_OF_KERNELS_ONLY)(function)
    return compiled


class _Draft(_generation.JITCodeLibrary):  # type: ignore[misc]
    """The code of a routine: to be linked into kernels, never run by itself."""

    def _optimize_final_module(self) -> None:
        """Leave it to the kernel."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """There is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """What stands in for the code generator once the code is there: nothing is left to be set in memory."""
        return _NothingToSet() if self._finalized else self._codegen


class _DraftApart(_Draft):
    """The code of a routine that LLVM keeps out of its callers."""

    def add_ir_module(self, module: Any) -> None:
        for function in module.functions:
            if function.blocks:
                function.attributes.add("noinline")
        super().add_ir_module(module)


class _NothingToSet:
    """Where numba would write the address of a function's Python objects, which a routine does not use."""

    def set_env(self, _name: str, _objects: Any) -> None:
        """Nothing."""


@_machinery.register_pass(mutates_CFG=False, analysis_only=False)
class _DraftOnly(_machinery.FunctionPass):  # type: ignore[misc]
    """Let the code that is about to be generated be a draft."""

    _name = "forestall_draft"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = state.pipeline.library(state.targetctx.codegen(), state.func_id.func_qualname)
        return False


class _Options(_compiler.Flags):  # type: ignore[misc]
    """Options of a compilation, which numba compares whenever it types a call: mostly those that are set are equal."""

    def __eq__(self, other: Any) -> bool:
        is_known = isinstance(other, _compiler.Flags)
        return is_known and bool(self._values == other._values or self.values() == other.values())

    def __hash__(self) -> int:
        return 0  # numba's own hash is a constant, too, and takes long


class _RoutineCompiler(_compiler.CompilerBase):  # type: ignore[misc]
    """Numba's compiler up to the point where code would be optimised."""

    library: type[_Draft] = _Draft

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.state.flags = _Options(self.state.flags)

    def define_pipelines(self) -> list[Any]:
        passes = _compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_DraftOnly, NopythonTypeInference)
        passes.finalize()
        return [passes]


class _ApartCompiler(_RoutineCompiler):
    library = _DraftApart


# Without ``forceinline`` said, numba takes that of whichever caller is compiled first.
_WITHOUT_COUNTS: dict[str, Any] = {"nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
_OF_KERNELS_ONLY: dict[str, Any] = {**_WITHOUT_COUNTS, "no_cpython_wrapper": True}
