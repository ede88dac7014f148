"""The digest of kernel sources, under which compiled kernels are stored.

It is needed because numba's own cache ignores changes in functions that a kernel calls in other files.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

PACKAGES_PREFIX = "".join(f"{part}." for part in __name__.split(".")[:-3])
"""Prefix of the names of this program's packages: empty in the repository, ``forestall._packages.`` in a wheel."""


@cache
def packages_with_kernels() -> tuple[str, ...]:
    """Return the packages of this program that have kernels. ``streams`` is the first."""
    top = Path(__file__).parents[2]
    folders = (source.parents[1] for source in top.glob("*/kernels/__init__.py"))
    names = (folder.name for folder in folders if (folder / "py.typed").is_file())
    return tuple(sorted(names, key=lambda name: (name != "streams", name)))


def kernel_digest() -> str:
    """Hash the sources of all shipped kernels, once per process, to sixteen hexadecimal digits.

    Compiled kernels are stored under this digest, so a kernel of another release or of earlier sources is never loaded.
    """
    return _digest_with(None)


def digest_for(module: str, file: str) -> str:
    """Return the digest under which kernels of a module are stored.

    It is ``kernel_digest`` for kernels of this program. For a module ``PACKAGE.kernels.TOPIC`` of any other package,
    the digest also covers the kernels of that package.
    """
    package, *inner = module.removeprefix(PACKAGES_PREFIX).split(".")
    is_other = package not in packages_with_kernels() and len(inner) > 1 and inner[0] == "kernels"
    return _digest_with(Path(file).parents[len(inner) - 2] if is_other else None)


@cache
def _digest_with(further: Path | None) -> str:
    folders = [folder_of_package(package) / "kernels" for package in packages_with_kernels()]
    return digest_of(folders if further is None else [*folders, further])


def digest_of(folders: Iterable[Path]) -> str:
    """Hash the Python sources in folders to sixteen hexadecimal digits."""
    digest = blake2b(digest_size=8)
    for folder in folders:
        for source in sorted(folder.rglob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()


def folder_of_package(package: str) -> Path:
    """Return the folder of one of this program's packages, without importing the package."""
    spec = find_spec(PACKAGES_PREFIX + package)
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError(f"the package {package} of this program is not installed as a folder")
    return Path(next(iter(spec.submodule_search_locations)))
