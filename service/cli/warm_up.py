"""``forestall warm-up``: compile all kernels in advance."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from service.cli.telling import telling
from service.cli.waiting import LINES_REST_S, Waiting, waiting_on
from service.doctor import EVERYTHING, size_of
from service.errors import KernelsNotCompiled
from streams.compiling import compile_kernels, kernels_folder, progress_of

_MIB = 1024**2


def warm_up(
    is_json: Annotated[
        bool, typer.Option("--json", help="Print progress and result as JSON lines on standard output.")
    ] = False,
) -> None:
    """Compile all kernels once for this user and machine, so that later commands start fast."""
    tell = telling(is_json=is_json)
    to_program = Waiting(lambda text: tell("compiling", text, progress=text), LINES_REST_S)
    with nullcontext(to_program) if is_json else waiting_on() as waiting:
        is_complete = compile_kernels(EVERYTHING, waiting.compiling)
    found = progress_of(EVERYTHING)
    if not is_complete:
        raise KernelsNotCompiled(
            f"{found.kept} of {found.needed or 'the'} kernels are compiled and kept; see the log above for the "
            "failure; forestall doctor shows whether they can be cached"
        )
    folder = kernels_folder()
    size = size_of(folder)
    tell(
        "compiled",
        f"{found.kept} kernels are compiled, {size / _MIB:.1f} MiB in {folder}",
        kernels=found.kept,
        folder=str(folder),
        size_bytes=size,
    )
