import os
import subprocess
import sys
from pathlib import Path

import pytest

from nfa.kernel_cache import KernelCache

PROGRAM = """
import sys
from somewhere import doubled

print(doubled(21), sum(doubled.stats.cache_hits.values()))
"""
MODULE = """
from numba import njit


@njit("int64(int64)", cache=True)
def doubled(number):
    return 2 * number
"""


def function():
    return 1


def run(folder, cache):
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(cache),
        "NUMBA_CACHE_LOCATOR_CLASSES": "nfa.kernel_cache.KernelCache",
        "PYTHONPATH": str(folder),
        "NUMBA_DISABLE_JIT": "0",
    }
    words = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_was_compiled_in_one_folder_is_found_from_another(tmp_path):
    for name, module in (("first", MODULE), ("second", MODULE), ("third", MODULE.replace("2 *", "3 *"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "somewhere.py").write_text(module)
    cache = tmp_path / "cache"
    assert run(tmp_path / "first", cache) == ["42", "0"]
    assert run(tmp_path / "second", cache) == ["42", "1"]
    assert run(tmp_path / "third", cache) == ["63", "0"]
    assert (cache / "somewhere").is_dir()


def test_no_folder_and_no_source_are_left_to_others(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    assert KernelCache.from_function(function, __file__) is None
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert KernelCache.from_function(function, "<stdin>") is None


def test_functions_of_one_name_are_told_apart_by_line_and_source(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "new"))
    place = KernelCache.from_function(function, __file__)
    assert place is not None
    assert Path(place.get_cache_path()).stat().st_mode & 0o777 == 0o700
    assert int(place.get_disambiguator()) == function.__code__.co_firstlineno
    other = KernelCache(tmp_path, 1, b"another source")
    assert place.get_source_stamp() != other.get_source_stamp()


def test_compiled_code_of_another_user_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(PermissionError, match=r"belongs to user .*FORESTALL_SPARK__WORKER_FOLDER"):
        KernelCache.from_function(function, __file__)
