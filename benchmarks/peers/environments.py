"""The peers' environments: each has a separate folder below ``.peers``, with pinned packages and compiled drivers.

If a peer cannot be set up (no network, no suitable Python, no Java compiler), the reason is reported. This is no error.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FOLDER = ROOT / ".peers"
OPEN_PACKAGES = ("java.lang", "java.util", "java.util.concurrent", "java.time", "java.nio", "java.net")
INSTALL_S = 600
_ASKED = """
import importlib.metadata, sys, sysconfig
print(importlib.metadata.version(sys.argv[1]))
print(sysconfig.get_path("purelib"))
"""


class Unavailable(Exception):
    """A peer cannot run here. The message has the reason in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The requirements of a peer.

    Attributes:
        name: The name of its folder and of its file in ``requirements``.
        package: The distribution whose version is reported.
        python: The only version for which its wheels are built, such as ``3.13``. None means any version.
        jars: The place of the jars in site-packages. Empty for peers in Python.
    """

    name: str
    package: str
    python: str | None = None
    jars: str = ""


PEERS = {
    peer.name: peer
    for peer in (
        Peer(name="flink", package="apache-flink-libraries", jars="pyflink/lib"),
        Peer(name="siddhi", package="PySiddhi", jars="__PySiddhiProxy/target/lib"),
        Peer(name="core", package="pycer", python="3.13"),
        Peer(name="bobo", package="bobocep"),
        Peer(name="duckdb", package="duckdb"),  # for scripts/bench question_index
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The environment of a peer that is set up.

    Attributes:
        folder: The folder of the environment.
        python: The interpreter of the environment.
        version: The version of the engine.
        jars: The class path of the engine. Empty for peers in Python.
    """

    folder: Path
    python: Path
    version: str
    jars: str = ""


def set_up(peer: Peer, folder: Path = FOLDER) -> Environment:
    """Install a peer, unless it is already installed with the same pins.

    Raises:
        Unavailable: The peer cannot be installed here.
    """
    place, pins = folder / peer.name, HERE / "requirements" / f"{peer.name}.txt"
    if peer.jars:
        java_tool("javac")
    python = place / "venv" / "bin" / "python"
    if not is_set_up(peer, folder):
        interpreter = python_for(peer.python)
        shutil.rmtree(place, ignore_errors=True)
        told(interpreter, "-m", "venv", "--without-pip", str(place / "venv"))
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(python))
        told(*pip, "install", "--no-compile", "--no-deps", "-r", str(pins))
        (place / "stamp").write_text(_stamp(peer), encoding="utf-8")
    version, packages = told(python, "-c", _ASKED, peer.package).splitlines()[-2:]
    jars = str(Path(packages) / peer.jars / "*") if peer.jars else ""
    return Environment(folder=place, python=python, version=version, jars=jars)


def is_set_up(peer: Peer, folder: Path = FOLDER) -> bool:
    """Return whether a peer is installed with the current pins."""
    stamp, python = folder / peer.name / "stamp", folder / peer.name / "venv" / "bin" / "python"
    return python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == _stamp(peer)


def _stamp(peer: Peer) -> str:
    pins = HERE / "requirements" / f"{peer.name}.txt"
    return fingerprint([pins.read_text(encoding="utf-8"), sys.version, str(peer.python)])


def compiled(environment: Environment, tag: str, sources: Iterable[Path], made: dict[str, str]) -> Path:
    """Compile the classes of a driver if a source has changed. Return the folder of the classes.

    Args:
        environment: The environment with the class path.
        tag: The tag of the classes. Earlier classes with the same tag are removed.
        sources: The Java files.
        made: The texts of further files by name.

    Raises:
        Unavailable: The driver cannot be compiled here.
    """
    chosen = sorted(sources)
    texts = [path.read_text(encoding="utf-8") for path in chosen] + sorted(made.values())
    classes = environment.folder / f"classes-{tag}-{fingerprint(texts)}"
    if classes.exists():
        return classes
    for old in environment.folder.glob(f"classes-{tag}-*"):
        shutil.rmtree(old)
    written = environment.folder / f"sources-{tag}"
    written.mkdir(exist_ok=True)
    for name, text in made.items():
        (written / name).write_text(text, encoding="utf-8")
    files = [*map(str, chosen), *(str(written / name) for name in made)]
    fresh = environment.folder / f"new-{tag}"
    shutil.rmtree(fresh, ignore_errors=True)
    told(java_tool("javac"), "-proc:none", "-nowarn", "-d", str(fresh), "-cp", environment.jars, *files)
    return fresh.rename(classes)


def java_tool(name: str) -> Path:
    """Return the path of ``java`` or ``javac``, from ``JAVA_HOME`` or PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise Unavailable(f"no {name}: it needs a JDK of version 17 or newer on PATH or in JAVA_HOME")
    return Path(found)


def python_for(version: str | None) -> Path:
    """Return a working interpreter of a version: the current one, one on PATH, or one of pyenv or uv."""
    if version is None or version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return Path(sys.executable)
    name = f"python{version}"
    candidates = [Path(part) / name for part in os.environ.get("PATH", "").split(os.pathsep)]
    kept = [
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions",
        Path.home() / ".local/share/uv/python",
    ]
    candidates += [path for folder in kept for path in sorted(folder.glob(f"*{version}*/bin/{name}"))]
    for candidate in candidates:
        if candidate.exists() and _runs(candidate):
            return candidate
    raise Unavailable(f"no Python {version} on PATH: its wheels are built for that version only")


def _runs(python: Path) -> bool:
    done = subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True, check=False)
    return done.returncode == 0


def told(*command: str | Path) -> str:
    """Run a command and return its output.

    Raises:
        Unavailable: The command fails; the message has its last line.
    """
    environment = {name: text for name, text in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=INSTALL_S, env=environment, cwd=ROOT
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{Path(command[0]).name} took more than {INSTALL_S} s") from error
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()
        errors = [line for line in lines if "error" in line.lower()]
        raise Unavailable(f"{Path(command[0]).name}: {(errors or lines)[-1].strip()}")
    return done.stdout


def fingerprint(texts: Iterable[str]) -> str:
    """Return a short digest of texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
