import sys

import orjson
import pytest

from service.cli import doctor as command
from service.cli import main
from service.doctor import EVERYTHING
from streams.compiling import CompileProgress


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Calls the command with a compiler that is played: its reports, and whether everything is kept at the end."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def run(*arguments, reports=(), is_complete=True):
        def compile_kernels(exercises, report):
            assert exercises == EVERYTHING
            for progress in reports:
                report(progress)
            return is_complete

        monkeypatch.setattr(command, "compile_kernels", compile_kernels)
        monkeypatch.setattr(command, "progress_of", lambda _: CompileProgress(40 if is_complete else 12, 40))
        monkeypatch.setattr(sys, "argv", ["forestall", "warm-up", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return run


def test_it_says_how_far_it_is_and_what_is_there(call, tmp_path):
    status, out, err = call(reports=[CompileProgress(12, 40)])
    assert (status, out) == (0, "")
    progress, result = err.splitlines()
    assert progress == "compiling kernels, 12 of 40; once per machine (0 s)"
    assert result.startswith(f"40 kernels are compiled, 0.0 MiB in {tmp_path}")


def test_for_programs_it_says_so_in_json(call):
    status, out, err = call("--json", reports=[CompileProgress(12, 40)])
    assert (status, err) == (0, "")
    progress, result = map(orjson.loads, out.splitlines())
    assert (progress["event"], progress["progress"]) == (
        "compiling", "compiling kernels, 12 of 40; once per machine (0 s)",
    )  # fmt: skip
    assert (result["event"], result["kernels"], result["size_bytes"]) == ("compiled", 40, 0)


def test_what_is_missing_at_the_end_is_an_error(call):
    status, _, err = call(is_complete=False)
    assert status == 2
    assert "12 of 40 kernels are compiled and kept" in err
