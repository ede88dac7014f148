import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from streams import KeptFolderRefused
from streams.kept.folder import kept_folder, kept_top, make_kept_folder, note_use, require_trusted

DAY_S = 86_400


@pytest.fixture
def top(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def mode_of(folder):
    return stat.S_IMODE(folder.stat().st_mode)


def test_it_is_in_the_folder_for_caches_of_the_platform(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert kept_top() == tmp_path / "caches" / "forestall"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative, so not valid")
    assert kept_top() == tmp_path / ".cache" / "forestall"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert kept_top() == tmp_path / "Library" / "Caches" / "forestall"


def test_the_variable_of_numba_names_another(top):
    assert kept_folder("kernels") == top / "kernels"


def test_without_a_home_there_is_none(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)

    def homeless(cls):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", classmethod(homeless))
    with pytest.raises(FileNotFoundError, match="set NUMBA_CACHE_DIR"):
        kept_top()


def test_every_folder_that_is_made_is_this_users_alone(top):
    folder = kept_folder("kernels") / "abc"
    before = os.umask(0)
    try:
        make_kept_folder(folder)
    finally:
        os.umask(before)
    assert [mode_of(place) for place in (folder, folder.parent, top)] == [0o700] * 3


def test_a_folder_of_another_user_is_refused(top, monkeypatch):
    make_kept_folder(folder := kept_folder("kernels"))
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    if owner:
        with pytest.raises(KeptFolderRefused, match=rf"belongs to user {owner}, .*NUMBA_CACHE_DIR"):
            require_trusted(folder)
    else:
        require_trusted(folder)  # root may have prepared it


def test_a_folder_of_a_stranger_is_refused_at_every_level(top, monkeypatch):
    make_kept_folder(folder := kept_folder("kernels") / "abc")
    plain = Path.stat
    for strange in (folder, folder.parent, top):

        def owned(place, *, strange=strange, **options):
            found = plain(place, **options)
            owner = os.geteuid() + 1 if place == strange else found.st_uid
            return os.stat_result((*found[:4], owner, *found[5:10]))

        monkeypatch.setattr(Path, "stat", owned)
        with pytest.raises(KeptFolderRefused, match=f"{strange} holds compiled code and belongs to user"):
            require_trusted(folder)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(top, mode):
    make_kept_folder(folder := kept_folder("kernels"))
    folder.chmod(mode)
    with pytest.raises(KeptFolderRefused, match="can be written by other users"):
        make_kept_folder(folder)


def test_above_it_may_be_a_folder_where_others_cannot_replace_it(top):
    make_kept_folder(folder := kept_folder("kernels"))
    top.chmod(0o1777)  # as /tmp is
    require_trusted(folder)
    top.chmod(0o777)
    with pytest.raises(KeptFolderRefused):
        require_trusted(folder)


def test_what_nobody_has_used_for_thirty_days_is_removed(top):
    folders = [kept_folder("kernels") / name for name in ("used", "old", "fresh")]
    for folder in folders:
        make_kept_folder(folder)
        (folder / "code").write_text("code")
    used, old, fresh = folders
    (leftover := used.with_name(".gone-1")).mkdir()
    now = fresh.stat().st_mtime
    for place, days in ((used, 31), (old, 31), (leftover, 31), (fresh, 29)):
        os.utime(place, (now - days * DAY_S,) * 2)
    note_use(used)
    assert sorted(used.parent.iterdir()) == [fresh, used]
    assert (used / "code").read_text() == "code"
    assert used.stat().st_mtime >= now


def test_old_files_are_removed_as_well(top):
    make_kept_folder(folder := kept_folder("grammars"))
    old, used = folder / "old", folder / "used"
    for file in (old, used):
        file.write_text("tables")
    os.utime(old, (used.stat().st_mtime - 31 * DAY_S,) * 2)
    note_use(used)
    assert list(folder.iterdir()) == [used]


def test_another_process_may_have_removed_it_already(top, monkeypatch):
    make_kept_folder(folder := kept_folder("kernels"))
    used, old = folder / "used", folder / "old"
    for place in (used, old):
        place.mkdir()
    os.utime(old, (used.stat().st_mtime - 31 * DAY_S,) * 2)
    rename = Path.rename

    def late(place, target):
        shutil.rmtree(place)
        return rename(place, target)

    monkeypatch.setattr(Path, "rename", late)
    note_use(used)
    assert list(folder.iterdir()) == [used]
    note_use(folder / "never was")
    assert list(folder.iterdir()) == [used]
