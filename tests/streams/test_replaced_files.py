"""A file is replaced as a whole or not at all."""

import os

import pytest

from streams import replacing


@pytest.mark.parametrize("is_durable", [True, False])
def test_the_old_content_stays_until_the_block_has_ended(tmp_path, is_durable):
    path = tmp_path / "a.state"
    path.write_bytes(b"old")
    with replacing(path, is_durable=is_durable) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["a.state"]


def test_a_block_that_fails_leaves_the_old_content(tmp_path):
    path = tmp_path / "a.state"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"%d" % (1 // 0))
    assert path.read_bytes() == b"old"


def test_a_durable_file_is_synced_before_it_has_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append((tmp_path / "a").exists()))
    with replacing(tmp_path / "a") as file:
        file.write(b"x")
    assert synced == [False, True]  # the file, then its folder
