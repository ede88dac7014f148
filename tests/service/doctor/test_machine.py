"""The machine is judged by what is on it."""

from importlib.metadata import version

import pytest
from packaging.requirements import Requirement

from service.doctor import worst
from service.doctor.machine import (
    file_system_of,
    look_at_folder,
    look_at_java,
    look_at_package,
    look_at_packages,
    look_at_python,
)


def test_this_environment_is_well():
    assert look_at_python().verdict == "ok"
    assert [finding.verdict for finding in look_at_packages()] == ["ok"]


@pytest.mark.parametrize(
    ("need", "words"),
    [
        ("numpy<1", f"numpy is {version('numpy')}, but <1 is needed"),
        ("no-such-package-here>=2", "no-such-package-here is not installed"),
    ],
)
def test_a_package_of_another_version_is_told_with_the_command(need, words):
    finding = look_at_package(Requirement(need))
    assert finding is not None
    assert finding.found == words
    assert f"pip install '{need}'" in finding.advice


def test_a_java_that_does_not_start_is_told_with_advice(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = look_at_java()
    assert finding.verdict == "problem"
    assert str(tmp_path) in finding.found
    assert "apt-get install openjdk-17" in finding.advice


def test_a_folder_that_is_not_there_yet_is_judged_by_the_one_above(tmp_path):
    found = list(look_at_folder(tmp_path / "a" / "b"))
    assert "GiB free" in found[0].found
    assert not (tmp_path / "a").exists()


def test_a_file_in_the_way_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("x")
    assert worst(look_at_folder(tmp_path / "file")) == "problem"


def test_the_nearest_mount_counts(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text("a / ext4 rw 0 0\nb /run tmpfs rw 0 0\nc /run/my\\040disk xfs rw 0 0\nodd\n")
    places = ["/var/x", "/run/x", "/run/my disk/x"]
    assert [file_system_of(type(tmp_path)(place), mounts) for place in places] == ["ext4", "tmpfs", "xfs"]
    assert file_system_of(tmp_path, tmp_path / "missing") is None
