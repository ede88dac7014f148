"""Compiled kernels outlive a process. Each test has a tiny kernel and folders of its own.

Processes are forked from one that has imported numba, but for those about what numba reads when it is imported.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import streams
from house import PACKAGES
from streams import KeptFolderRefused, kernel_digest
from streams.kept.kernel_digest import digest_for, digest_of, packages_with_kernels
from streams.kernels.keeping import KeptKernel, kept_of

pytestmark = pytest.mark.compiled

MODULE = """
from streams.kernels.compiling import kernel, routine

@routine
def twice(number):
    return 2 * number

@kernel
def doubled(number):
    return twice(number)
"""
FORKED = "python-forked"
READ_AT_IMPORT = {"NUMBA_BOUNDSCHECK", "NUMBA_CPU_NAME", "NUMBA_DISABLE_JIT"}
PROGRAM = """
from somewhere import doubled
from streams.kept.kernel_digest import digest_of
from streams.kernels.keeping import kept_of

before = sorted(kept_of(["somewhere.doubled", "somewhere.other"]))
print(doubled(21), sum(doubled.stats.cache_hits.values()), before, doubled.stats.cache_path)
"""


@pytest.fixture
def place(tmp_path, commands):
    """The folder of the module, of what is kept, and of the program that forks."""
    return made_place(tmp_path, commands)


@pytest.fixture(scope="module")
def first_place(tmp_path_factory, commands):
    """A place where the module was run."""
    place = made_place(tmp_path_factory.mktemp("first"), commands)
    assert run(place)[0] == ["42", "0"]
    return place


def made_place(folder, commands):
    (folder / "code").mkdir()
    (folder / "code" / "somewhere.py").write_text(MODULE)
    shutil.copy2(commands / FORKED, folder)
    return folder


@pytest.fixture
def used(first_place, tmp_path):
    """A place of the test's own where the module was run."""
    shutil.copytree(first_place, tmp_path, dirs_exist_ok=True)
    return tmp_path


def environment(place, **changes):
    return os.environ | {
        "NUMBA_CACHE_DIR": str(place / "kept"),
        "PYTHONPATH": f"{place / 'code'}{os.pathsep}{Path(streams.__file__).parents[1]}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_DISABLE_JIT": "0",
        **changes,
    }


def start(place, program=PROGRAM, *, is_new=False, **changes):
    variables = environment(place, **changes)
    folders = variables["PYTHONPATH"].split(os.pathsep)
    forked = [
        str(place / FORKED),
        "-c",
        f"import sys\nsys.path[:0], sys.dont_write_bytecode = {folders}, True\n{program}",
    ]
    words = [sys.executable, "-c", program] if is_new or READ_AT_IMPORT & changes.keys() else forked
    pipe = subprocess.PIPE
    return subprocess.Popen(words, env=variables, stdout=pipe, stderr=pipe, text=True)


def run(place, program=PROGRAM, **changes):
    process = start(place, program, **changes)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.split(" ", 2)[:2], out, err


def test_a_kernel_is_compiled_once(place):
    first, out, _ = run(place)
    assert (first, "[]" in out) == (["42", "0"], True)
    second, out, _ = run(place, is_new=True)
    assert (second, "['somewhere.doubled']" in out) == (["42", "1"], True)
    (folder,) = (place / "kept" / "kernels").iterdir()
    assert sorted(file.name for file in folder.iterdir()) == [
        f"somewhere.doubled.{ending}" for ending in ("1.nbc", "lock", "nbi")
    ]
    assert out.strip().endswith(str(folder))


def test_kept_code_is_loaded_without_the_compilers_implementations(used):
    program = f"{PROGRAM}\nimport sys\nprint([name for name in sys.modules if name.startswith('numba.np.linalg')])"
    kept, out, _ = run(used, program, is_new=True)
    assert (kept, out.splitlines()[1]) == (["42", "1"], "[]")
    (used / "code" / "somewhere.py").write_text(MODULE.replace("2 *", "3 *"))
    compiled, out, _ = run(used, program, is_new=True)
    assert (compiled, out.splitlines()[1]) == (["63", "0"], "['numba.np.linalg']")


def test_another_checkout_finds_it(used):
    (used / "code").rename(used / "moved")
    assert run(used, PYTHONPATH=environment(used)["PYTHONPATH"].replace("code", "moved"))[0] == ["42", "1"]


def test_a_changed_source_is_compiled_anew(used):
    (used / "code" / "somewhere.py").write_text(MODULE.replace("2 *", "3 *"))
    assert run(used)[0] == ["63", "0"]


@pytest.mark.parametrize("change", [{"NUMBA_BOUNDSCHECK": "1"}, {"NUMBA_CPU_NAME": "generic"}])
def test_what_machine_code_depends_on_has_a_folder_of_its_own(used, change):
    assert run(used, **change)[0] == ["42", "0"]
    assert len(list((used / "kept" / "kernels").iterdir())) == 2


def test_without_any_variable_it_is_in_the_users_folder_for_caches(place):
    home = {"NUMBA_CACHE_DIR": "", "HOME": str(place), "XDG_CACHE_HOME": ""}
    assert run(place, **home)[0] == ["42", "0"]
    assert run(place, **home)[0] == ["42", "1"]
    folder = "Library/Caches" if sys.platform == "darwin" else ".cache"
    assert list((place / folder / "forestall" / "kernels").glob("*/somewhere.doubled.nbi"))
    assert not list(place.glob("code/**/*.nbi"))


def test_processes_that_start_together_compile_it_once(place):
    slow = MODULE + "\n".join(f"@routine\ndef f{n}(a):\n    return a + {n}\n" for n in range(12))
    calls = "".join(f"    number = f{n}(number)\n" for n in range(12))
    slow += f"@kernel\ndef slow(number):\n{calls}    return number\n"
    (place / "code" / "somewhere.py").write_text(slow)
    program = "from somewhere import slow\nprint(slow(1), sum(slow.stats.cache_misses.values()), '')"
    processes = [start(place, program) for _ in range(3)]
    answers = [process.communicate(timeout=120)[0].split() for process in processes]
    assert sorted(answers) == [["67", "0"], ["67", "0"], ["67", "1"]]
    assert run(place, program)[0] == ["67", "0"]


def test_a_process_that_is_killed_while_it_compiles_leaves_no_trace(place):
    dies = MODULE.replace("return twice(number)", "return twice(number)  # dies") + (
        "\nimport os\ndoubled._cache._save_overload = lambda *_: os._exit(9)\n"
    )
    (place / "code" / "somewhere.py").write_text(dies)
    process = start(place)
    process.communicate(timeout=120)
    assert process.returncode == 9
    (place / "code" / "somewhere.py").write_text(MODULE)
    assert run(place)[0] == ["42", "0"]
    assert run(place)[0] == ["42", "1"]


@pytest.mark.parametrize(("ending", "content"), [("nbi", b""), ("1.nbc", b"\x80\x04")])
def test_a_damaged_file_is_written_again(used, ending, content):
    (file,) = (used / "kept").glob(f"kernels/*/somewhere.doubled.{ending}")
    file.write_bytes(content)
    assert run(used)[0] == ["42", "0"]
    assert run(used)[0] == ["42", "1"]


def test_where_nothing_can_be_kept_each_process_compiles_and_says_so(place):
    (place / "kept").write_text("no folder")
    answer, _, err = run(place)
    assert answer == ["42", "0"]
    assert err.count("compiled kernels cannot be kept") == 1
    assert "NUMBA_CACHE_DIR" in err


def test_a_folder_that_others_may_write_to_is_refused(used):
    (used / "kept" / "kernels").chmod(0o777)
    process = start(used)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "KeptFolderRefused" in err
    assert "can be written by other users" in err


def test_interpreted_kernels_leave_nothing(place):
    program = "from somewhere import doubled\nprint(doubled(21), type(doubled).__name__, '')"
    assert run(place, program, NUMBA_DISABLE_JIT="1")[0] == ["42", "function"]
    assert not (place / "kept").exists()


def test_the_digest_is_of_all_kernels():
    top = Path(streams.__file__).parents[1]
    found = {package for package in PACKAGES if (top / package / "kernels" / "__init__.py").is_file()}
    assert found == set(packages_with_kernels())
    assert len(kernel_digest()) == 16


@pytest.mark.parametrize("package", packages_with_kernels())
def test_a_changed_kernel_of_any_package_has_another_digest(package, tmp_path):
    top = Path(streams.__file__).parents[1]
    folders = [tmp_path / name for name in packages_with_kernels()]
    for folder in folders:
        shutil.copytree(top / folder.name / "kernels", folder)
    assert digest_of(folders) == kernel_digest()
    (tmp_path / package / "planted.py").write_text("x = 1\n")
    assert digest_of(folders) != kernel_digest()


def test_kernels_of_another_package_are_kept_by_the_content_of_its_own_kernels_too(tmp_path):
    folders = []
    for number in range(2):
        folder = tmp_path / str(number) / "other" / "kernels"
        (folder / "inner").mkdir(parents=True)
        (folder / "callee.py").write_text(f"x = {number}\n")
        folders.append(folder)
    names = [("other.kernels.top", "top.py"), ("other.kernels.inner.deep", "inner/deep.py")]
    found = [{digest_for(module, str(folder / file)) for module, file in names} for folder in folders]
    assert [len(some) for some in found] == [1, 1]
    assert len({kernel_digest()}.union(*found)) == 3
    for module in ("nfa.kernels.traces", "other.kernels", "other.compiled", "other"):
        assert digest_for(module, str(folders[0] / "top.py")) == kernel_digest()


def test_a_refusal_reaches_the_caller(monkeypatch, tmp_path):
    def function(number):
        return number

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels").chmod(0o777)
    kept = KeptKernel(function)
    assert kept.cache_path is None
    with pytest.raises(KeptFolderRefused):
        kept.load_overload(None, None)
    assert kept_of([kept._name]) == frozenset()
