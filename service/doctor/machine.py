"""Checks of the machine: Java, Python and its packages, the compiled kernels, and the data folder."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from pipeline import JavaMissing, check_java
from service.doctor.findings import Finding, ok, problem, warning
from service.settings import PREFIX
from shards import EXERCISES
from streams import KeptFolderRefused
from streams.compiling import JSON_LINES, kernels_folder, progress_of

EVERYTHING = (*EXERCISES, JSON_LINES)

_DISTRIBUTION = "forestall"
_INSTALLED = tuple({"extra": extra} for extra in ("", "service", "spark"))  # extras of the whole service
_SHOWN = ("pyspark", "pandas", "numpy", "numba")  # packages whose versions must fit each other
_GIB = 1024**3
_LEAST_ROOM, _GOOD_ROOM = _GIB, 5 * _GIB
_FLEETING = ("tmpfs", "ramfs")


def look_at_java() -> Finding:
    """Check that Spark's launcher finds a Java version that Spark supports."""
    # house: allow environment: Spark's launcher tries this variable first
    home = os.environ.get("JAVA_HOME")
    try:
        java_version = check_java()
    except JavaMissing as error:
        return problem("java", error.message.partition(". Spark needs")[0], error.message.partition(". ")[2])
    return ok(
        "java", f"Java {java_version}, {'JAVA_HOME is ' + home if home else 'from PATH, as JAVA_HOME is not set'}"
    )


def look_at_python() -> Finding:
    """Check that the project supports this version of Python."""
    supported, python_version = SpecifierSet(metadata(_DISTRIBUTION)["Requires-Python"]), platform.python_version()
    if supported.contains(python_version, prereleases=True):
        return ok("python", f"Python {python_version}")
    return problem("python", f"Python {python_version}", f"install Python {supported} and set the environment up again")


def look_at_packages() -> Iterator[Finding]:
    """Check that each required package is installed in a supported version."""
    requirements = [Requirement(text) for text in requires(_DISTRIBUTION) or ()]
    applicable = [
        requirement
        for requirement in requirements
        if requirement.marker is None or any(map(requirement.marker.evaluate, _INSTALLED))
    ]
    faults = [finding for requirement in applicable if (finding := look_at_package(requirement)) is not None]
    yield from faults
    if not faults:
        versions = ", ".join(f"{name} {version(name)}" for name in _SHOWN)
        yield ok(
            "packages", f"{versions} and {len(applicable) - len(_SHOWN)} others are of the versions that are asked for"
        )


def look_at_package(requirement: Requirement) -> Finding | None:
    """Return a finding if a package is missing or its version is not supported, otherwise None."""
    advice = f"run make setup, or: pip install '{requirement.name}{requirement.specifier}'"
    try:
        installed_version = version(requirement.name)
    except PackageNotFoundError:
        return problem("packages", f"{requirement.name} is not installed", advice)
    if requirement.specifier.contains(installed_version, prereleases=True):
        return None
    return problem(
        "packages", f"{requirement.name} is {installed_version}, but {requirement.specifier} is needed", advice
    )


def look_at_kernels() -> Finding:
    """Check that the folder of compiled kernels can be written.

    The finding also reports the size of the folder, and whether kernels are missing.
    """
    advice = "name a folder that this user may write: NUMBA_CACHE_DIR"
    try:
        folder = kernels_folder()
        progress = progress_of(EVERYTHING)
    except KeptFolderRefused as error:
        return problem("kernels", error.message.partition("; ")[0], "remove the folder, or " + advice)
    except OSError as error:
        return warning("kernels", f"compiled kernels cannot be kept: {error}", advice)
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return warning("kernels", f"{existing} cannot be written: each process compiles its own kernels", advice)
    needed = "" if progress.needed is None else f" of {progress.needed}"
    remainder = "" if progress.is_complete else "; the rest is compiled when it is needed, or now by forestall warm-up"
    return ok(
        "kernels", f"{progress.kept}{needed} are compiled, {size_of(folder) / 1024**2:.1f} MiB in {folder}{remainder}"
    )


def size_of(folder: Path) -> int:
    """Return the total size in bytes of the files in a folder, or 0 if the folder does not exist."""
    try:
        return sum(file.stat().st_size for file in folder.iterdir())
    except FileNotFoundError:
        return 0


def look_at_folder(folder: Path) -> Iterator[Finding]:
    """Check that the data folder can be written, has enough free space, and survives a restart of the machine."""
    place = folder.resolve()
    existing = next(parent for parent in (place, *place.parents) if parent.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield problem(
            "data folder", f"{place} cannot be written", f"let this user write it, or name another: {PREFIX}DATA_DIR"
        )
        return
    room = shutil.disk_usage(existing).free
    observation = f"{place}, {room / _GIB:.1f} GiB free"
    advice = f"make room, or name a folder on another disk: {PREFIX}DATA_DIR"
    if room < _LEAST_ROOM:
        yield problem("data folder", observation, advice)
    elif room < _GOOD_ROOM:
        yield warning("data folder", observation, advice)
    else:
        yield ok("data folder", observation)
    kind = file_system_of(existing)
    if kind in _FLEETING:
        yield warning(
            "data folder",
            f"{place} is in memory ({kind}): checkpoint and states are lost when the machine restarts",
            f"name a folder on a disk: {PREFIX}DATA_DIR",
        )


def file_system_of(place: Path, mounts: Path = Path("/proc/mounts")) -> str | None:
    """Return the type of the file system that contains a path, or None if the operating system does not report it."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    kinds = {Path(words[1].replace("\\040", " ")): words[2] for words in map(str.split, lines) if len(words) > 2}
    holders = [point for point in kinds if place.is_relative_to(point)]
    return kinds[max(holders, key=lambda point: len(point.parts))] if holders else None
