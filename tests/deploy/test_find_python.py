"""The search for the Python of the environment: the newest usable one, but an optimized build before all others."""

import os
import subprocess
import sys

import pytest

from house import ROOT

OPTIMIZED = "'--enable-shared' '--enable-optimizations'"
PROGRAM = """#!/bin/sh
exec {real} -c 'import sys, sysconfig
sys.version_info, sys.base_prefix = {version}, "{prefix}"
sysconfig.get_config_vars()["CONFIG_ARGS"] = "{options}"
exec(sys.argv[1])' "$2"
"""


def search(folder, **pythons):
    """The program found where only the given ones are on PATH: (version, prefix, options of configure) by name."""
    for name, (version, prefix, options) in pythons.items():
        program = folder / name.replace("_", ".")
        text = PROGRAM.format(real=sys.executable, version=version, prefix=prefix, options=options.replace("'", ""))
        program.write_text(text)
        program.chmod(0o755)
    (folder / "bash").symlink_to("/bin/bash")
    (folder / "cat").symlink_to("/bin/cat")
    environment = {name: value for name, value in os.environ.items() if name != "FORESTALL_PYTHON"}
    return subprocess.run(
        ["/bin/bash", ROOT / "scripts" / "find-python"],
        env={**environment, "PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("pythons", "found"),
    [
        ({"python3_13": ((3, 13), "/opt", ""), "python3_11": ((3, 11), "/opt", OPTIMIZED)}, "python3.11"),
        ({"python3_13": ((3, 13), "/opt", ""), "python3": ((3, 11), "/usr", "")}, "python3"),
        ({"python3_13": ((3, 13), "/opt", OPTIMIZED), "python3_12": ((3, 12), "/usr", "")}, "python3.13"),
        ({"python3_12": ((3, 12), "/opt", ""), "python3_11": ((3, 11), "/opt", "")}, "python3.12"),
        ({"python3_11": ((3, 10), "/usr", OPTIMIZED), "python3": ((3, 12), "/opt", "")}, "python3"),
    ],
)
def test_an_optimized_build_comes_first_and_then_the_newest(tmp_path, pythons, found):
    answer = search(tmp_path, **pythons)
    assert (answer.returncode, answer.stdout) == (0, f"{tmp_path / found}\n"), answer.stderr


def test_a_python_that_is_too_old_is_refused_with_what_to_install(tmp_path):
    answer = search(tmp_path, python3=((3, 10), "/usr", OPTIMIZED))
    assert answer.returncode == 1
    assert "needs Python 3.11 to 3.14 with the venv module" in answer.stderr
