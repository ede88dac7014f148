"""Kernels of a module of the test's own are compiled by several processes, in a folder of their own."""

import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest

import streams
from streams import KeptFolderRefused
from streams.compiling import CompileProgress, compile_kernels, compile_missing, kernels_folder, progress_of
from streams.kernels.keeping import keep_needs

pytestmark = pytest.mark.compiled

MODULE = """
from streams.kernels.compiling import kernel, routine


@routine
def twice(number):
    return 2 * number


@kernel
def doubled(number):
    return twice(number)


@kernel
def quadrupled(numbers):
    for i in range(len(numbers)):
        numbers[i] = twice(twice(numbers[i]))
    return len(numbers)


@kernel
def unused(number):
    return number


"""
HOLDS = """
import sys, time
from pathlib import Path
from streams.kept.file_lock import FileLock

lock = FileLock(Path(sys.argv[1]))
print(lock.take(0.0), flush=True)
time.sleep(600)
"""
EXERCISES = """
import os
import time

import numpy as np

import somewhere


def both():
    return doubling(), quadrupling(np.arange(3.0))


def one(number):
    return somewhere.doubled(int(number))


def doubling():
    return somewhere.doubled(21)


def quadrupling(numbers):
    return somewhere.quadrupled(numbers)


def dying():
    print("out of memory", flush=True)
    os._exit(7)


def hanging():
    time.sleep(600)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder of the modules; children find them, and all keep what they compile below it."""
    (tmp_path / "somewhere.py").write_text(MODULE)
    (tmp_path / "exercising.py").write_text(EXERCISES)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{Path(streams.__file__).parents[1]}")
    monkeypatch.setattr("streams.kernels.keeping.is_compiling_off", lambda: False)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    return tmp_path


def started(monkeypatch):
    """The processes that were started, as they are noted."""
    seen = []
    popen = subprocess.Popen

    def noting(words, **options):
        seen.append(words)
        return popen(words, **options)

    monkeypatch.setattr(subprocess, "Popen", noting)
    return seen


def test_what_an_exercise_calls_is_compiled_and_kept(place, monkeypatch):
    processes = started(monkeypatch)
    said: list[CompileProgress] = []
    assert compile_kernels(["exercising:both"], said.append, processes=2)
    assert len(processes) == 2
    assert (said[0].kept, said[-1]) == (0, CompileProgress(2, 2))
    kept = {file.name for file in kernels_folder().glob("*.nbi")}
    assert kept == {"somewhere.doubled.nbi", "somewhere.quadrupled.nbi"}
    assert len(list(kernels_folder().glob("*.nbc"))) == 2


def test_what_was_compiled_ahead_is_what_is_called(place):
    assert compile_kernels(["exercising:both"], processes=1)
    program = "import exercising, somewhere\nprint(exercising.both())\n" + "".join(
        f"print(somewhere.{name}.stats.cache_misses)\n" for name in ("doubled", "quadrupled")
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["(42, 3)", "Counter()", "Counter()"]


def test_nothing_is_started_for_what_is_kept(place, monkeypatch):
    compile_kernels(["exercising:one:3"], processes=1)
    processes = started(monkeypatch)
    said: list[CompileProgress] = []
    begun = time.process_time()
    assert compile_kernels(["exercising:one:3"], said.append)
    assert time.process_time() - begun < 0.1
    assert (processes, said) == ([], [])
    compile_missing(["exercising:one:3"])  # would not find the module in this process


def test_only_what_is_missing_is_compiled(place):
    compile_kernels(["exercising:doubling"], processes=1)
    (before,) = kernels_folder().glob("somewhere.doubled.*nbc")
    written = before.stat().st_mtime_ns
    assert progress_of(["exercising:doubling", "exercising:both"]) == CompileProgress(1, None)
    assert compile_kernels(["exercising:both"], processes=1)
    assert before.stat().st_mtime_ns == written


def test_processes_that_die_are_reported_and_nothing_hangs(place, caplog):
    with caplog.at_level(logging.WARNING):
        assert not compile_kernels(["exercising:dying"], processes=2)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "ended with status 7" in caplog.text
    assert "out of memory" in caplog.text


def test_the_death_of_one_process_leaves_its_work_to_the_others(place):
    keep_needs("exercising:both", ["somewhere.doubled", "somewhere.quadrupled"])
    lock = kernels_folder() / "somewhere.doubled.lock"
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(lock)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        said = []

        def report(progress):
            said.append(progress)
            if progress.kept == 1:
                holder.kill()

        assert compile_kernels(["exercising:both"], report, processes=1)
    assert said[-1] == CompileProgress(2, 2)
    assert CompileProgress(1, 2) in said


def test_it_can_be_ended_early(place):
    stop = Event()
    begun = time.monotonic()
    assert not compile_kernels(["exercising:hanging"], lambda _: stop.set(), processes=1, stop=stop)
    assert time.monotonic() - begun < 300


def test_processes_that_cannot_be_started_are_done_without(place, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(place / "no-python"))
    assert not compile_kernels(["exercising:both"], processes=2)


def test_interpreted_kernels_need_nothing(place, monkeypatch):
    monkeypatch.setattr("streams.kernels.keeping.is_compiling_off", lambda: True)
    processes = started(monkeypatch)
    assert compile_kernels(["exercising:both"])
    compile_missing(["exercising:both"])
    assert processes == []


def test_a_folder_that_others_may_write_to_is_refused(place):
    kernels_folder().mkdir(parents=True, mode=0o700)
    (place / "kept").chmod(0o777)
    with pytest.raises(KeptFolderRefused, match="can be written by other users"):
        compile_kernels(["exercising:both"])


def test_progress_in_words():
    assert CompileProgress(0, None).text == "compiling kernels"
    assert CompileProgress(12, 40).text == "compiling kernels, 12 of 40"
    assert CompileProgress(2, 2).is_complete
    assert not CompileProgress(0, None).is_complete
