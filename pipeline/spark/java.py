"""The Java that Spark runs on: which one it is, and how it starts fast."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version as version_of
from pathlib import Path

import pyspark

from pipeline.errors import JavaMissing
from streams import KeptFolderRefused, kept_folder, make_kept_folder, note_use, require_trusted

_LEAST_JAVA = 17
_QUIET = "-Xshare:auto -Xlog:cds*=off"  # what the Java machine says of classes that it leaves out
_OTHER_MACHINE = "OpenJ9"  # shares classes in its own way
_HEADER_BYTES = 4  # written last; zeros in a file that is not whole


def check_java() -> int:
    """Major version of the Java that Spark will start.

    Raises:
        JavaMissing: There is none, or it is older than 17; the message says how to get one.
    """
    version, _ = find_java()
    return version


def find_java() -> tuple[int, str]:
    """Major version of the Java that Spark will start, and what it prints of itself.

    Raises:
        JavaMissing: As ``check_java``.
    """
    # house: allow environment: Spark's own launcher looks for Java there first
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    advice = (
        f"Spark needs Java {_LEAST_JAVA} or newer: install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless;"
        " macOS: brew install openjdk@17) and put java on PATH, or set JAVA_HOME"
    )
    if java is None:
        raise JavaMissing(f"no java on PATH and JAVA_HOME is not set. {advice}")
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaMissing(f"{java} does not start: {error}. {advice}", java=java) from error
    told = answer.stderr + answer.stdout
    version = java_version(told)
    if version < _LEAST_JAVA:
        raise JavaMissing(f"{java} is Java {version or 'of an unknown version'}. {advice}", java=java, version=version)
    return version, told


def java_version(text: str) -> int:
    """Major version in what ``java -version`` prints; 0 where none is found."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return 0
    major = int(found.group(1))
    return int(found.group(2) or 0) if major == 1 else major


def archive_options(java: str, *, writes: bool) -> str:
    """Options of the Java machine that start it with an archive of classes (class data sharing, JEP 350).

    A process may write its classes, as it has read them, to a file when it ends; others map that file and start in
    little more than half the time. It is in the ``kept_folder``, named by everything it was made from. The Java machine
    checks that it fits, and goes on without it where it does not.

    Args:
        java: What ``java -version`` prints.
        writes: Whether the process is to write the archive at its end where there is none, which takes it some seconds.

    Returns:
        Nothing where there is no archive, or none can be used.
    """
    if _OTHER_MACHINE in java:
        return ""
    parts = java, version_of("pyspark"), str(Path(pyspark.__file__).parent)
    digest = sha256(repr(parts).encode()).hexdigest()
    with suppress(OSError, KeptFolderRefused):
        place = kept_folder("java") / f"{digest[:16]}.jsa"
        if writes:
            make_kept_folder(place.parent)
        require_trusted(place.parent)
        if _is_whole(place):
            note_use(place)
            return f'{_QUIET} -XX:SharedArchiveFile="{place}"'
        if writes:
            return f'{_QUIET} -XX:ArchiveClassesAtExit="{place}"'
    return ""


def _is_whole(place: Path) -> bool:
    try:
        with place.open("rb") as file:
            return any(file.read(_HEADER_BYTES))
    except OSError:
        return False
