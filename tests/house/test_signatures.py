"""A kernel that was compiled for two kinds of argument is found."""

import os
import subprocess
import sys
from types import ModuleType

from numba import njit

from house import ROOT, called_kernels, surplus_signatures


def kernel_module(*arguments):
    def double(value):
        return value + value

    double.__module__ = "planted.kernels"
    module = ModuleType("planted.kernels")
    kernel = njit(double)
    for argument in arguments:
        kernel(argument)
    vars(module)["double"] = kernel
    return module


def test_second_signature_is_found():
    (found,) = surplus_signatures([kernel_module(1, 1.5)])
    assert found.startswith("planted.kernels.double was compiled 2 times")


def test_one_signature_is_fine():
    assert surplus_signatures([kernel_module(1, 2)]) == []


def test_a_kernel_that_was_called_is_found():
    assert called_kernels([kernel_module(1)]) == ["planted.kernels.double"]
    assert called_kernels([kernel_module()]) == []


def test_a_module_that_calls_kernels_while_it_is_collected_is_refused(tmp_path):
    (tmp_path / "conftest.py").write_text(
        (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "__init__.py").touch()
    (tmp_path / "planted" / "kernels.py").write_text("from numba import njit\n\n@njit\ndef f(x):\n    return x\n")
    test = "from planted.kernels import f\n{}\ndef test_it():\n    assert f(1) == 1\n"
    words = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", str(tmp_path)]
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "scripts"), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "0"}
    for call, status in (("", 0), ("f(1)", 4)):
        (tmp_path / "test_planted.py").write_text(test.format(call))
        done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        assert ("collecting the tests called kernels" in done.stdout + done.stderr) == bool(call)
