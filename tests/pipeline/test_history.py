"""Which files a history has."""

import pytest

from pipeline.history import history_files
from streams import EventFileError


def test_files_below_a_folder_come_by_their_paths_without_hidden_ones(tmp_path):
    for name in ("b.jsonl", "a/z.csv", "_temporary/x.jsonl", ".crc", "a/_SUCCESS"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert history_files(tmp_path) == (tmp_path / "a" / "z.csv", tmp_path / "b.jsonl")
    assert history_files(tmp_path / "b.jsonl") == (tmp_path / "b.jsonl",)


def test_nothing_to_read_is_refused(tmp_path):
    with pytest.raises(EventFileError, match="holds no event files"):
        history_files(tmp_path)
    with pytest.raises(EventFileError, match="no such file or folder"):
        history_files(tmp_path / "none")
