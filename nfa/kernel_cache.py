"""Where compiled kernels are kept on machines to which the packages are shipped.

Numba keeps compiled code by the folder of the source, and on a cluster's executors that folder is another one each
time. ``KernelCache`` keeps it by the name of the module and the content of its source. Numba is told of it by
``NUMBA_CACHE_LOCATOR_CLASSES=nfa.kernel_cache.KernelCache``, which replaces all its own ways; so this one takes every
function that has a source. Numba also keeps apart compilers, processors and their features.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any


class KernelCache:
    """Place of one function's compiled code: ``$NUMBA_CACHE_DIR/<module>``, for this user alone.

    The methods are those that numba asks for.

    Args:
        folder: Where the module's functions are.
        line: Where the function begins, which tells functions of one name apart.
        source: What was compiled.
    """

    def __init__(self, folder: Path, line: int, source: bytes) -> None:
        self._folder = folder
        self._line = line
        self._source = source

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> KernelCache | None:
        """The place for a function; None where there is no folder or no source.

        Raises:
            PermissionError: The folder belongs to another user, who could have put any code there.
        """
        # house: allow environment: numba's own variable, which is set with the one that names this class
        top = os.environ.get("NUMBA_CACHE_DIR", "")
        if not top or not Path(py_file).is_file():
            return None
        place = cls(Path(top) / py_func.__module__, py_func.__code__.co_firstlineno, Path(py_file).read_bytes())
        place.ensure_cache_path()
        return place

    def ensure_cache_path(self) -> None:
        """Make the folder if need be.

        Raises:
            PermissionError: It belongs to another user.
        """
        self._folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder.mkdir(exist_ok=True, mode=0o700)
        for folder in (self._folder.parent, self._folder):
            owner = folder.stat().st_uid
            if owner != os.getuid():
                raise PermissionError(
                    f"{folder} holds compiled code and belongs to user {owner}, not to user {os.getuid()} who would run"
                    " it; choose another folder (FORESTALL_SPARK__WORKER_FOLDER)"
                )

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def get_source_stamp(self) -> bytes:
        """Tells whether compiled code is of this source."""
        return sha256(self._source).digest()

    def get_disambiguator(self) -> str:
        """Tells apart what has one name."""
        return str(self._line)
