"""A name for compiled kernels: numba does not notice that a kernel's callee in another file has changed."""

from __future__ import annotations

from hashlib import blake2b
from importlib.resources import files

_PACKAGES = ("streams", "nfa")  # those that have kernels


def kernel_digest() -> str:
    """Sixteen hexadecimal digits over the sources of all kernels.

    A folder of compiled kernels that outlives an upgrade has it in its name.
    """
    digest = blake2b(digest_size=8)
    for package in _PACKAGES:
        folder = files(package).joinpath("kernels")
        for source in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if source.name.endswith(".py"):
                digest.update(source.read_bytes())
    return digest.hexdigest()
