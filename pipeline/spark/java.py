"""The Java on which Spark runs: how it is found, and how it starts faster."""

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
_QUIET = "-Xshare:auto -Xlog:cds*=off"  # no messages about classes that the archive lacks
_OTHER_MACHINE = "OpenJ9"  # this JVM shares classes in another way
_HEADER_BYTES = 4  # written last; zeros in an unfinished file


def check_java() -> int:
    """Return the major version of the Java that Spark will start.

    Raise ``JavaMissing``, with advice, if there is no Java or it is older than 17.
    """
    version, _ = find_java()
    return version


def find_java() -> tuple[int, str]:
    """Return the major version of the Java that Spark will start, and its ``java -version`` output.

    Raises as ``check_java``.
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
    output = answer.stderr + answer.stdout
    version = java_version(output)
    if version < _LEAST_JAVA:
        raise JavaMissing(f"{java} is Java {version or 'of an unknown version'}. {advice}", java=java, version=version)
    return version, output


def java_version(text: str) -> int:
    """Return the major version in the output of ``java -version``, or 0 if none is found."""
    version_match = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if version_match is None:
        return 0
    major = int(version_match.group(1))
    return int(version_match.group(2) or 0) if major == 1 else major


def archive_options(java: str, *, writes: bool) -> str:
    """Return JVM options that start Java with an archive of classes (class data sharing, JEP 350), or no options.

    A process can write its loaded classes to an archive when it ends. Later processes map the archive and start in
    little more than half the time. The archive is in the ``kept_folder``. Its name depends on everything that
    determines its content, such as ``java``, the output of ``java -version``. If an archive does not fit, the JVM
    ignores it. With ``writes``, the process may write a missing archive at its end, which takes some seconds.
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
