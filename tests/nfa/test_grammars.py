import os
from pathlib import Path

import lark
import pytest

from nfa.language.grammars import kept_parser

GRAMMAR = 'start: "a" word+\nword: /[b-z]/\n'
OPTIONS = {"start": ["start"], "parser": "lalr", "propagate_positions": True}


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Where tables are kept: in a folder that is not there yet."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels" / "grammars"


@pytest.fixture
def built(monkeypatch):
    """The grammars from which tables were built."""
    seen = []
    build = lark.Lark.__init__

    def building(self, grammar, **options):
        seen.append(grammar)
        build(self, grammar, **options)

    monkeypatch.setattr(lark.Lark, "__init__", building)
    return seen


def works(parser):
    tree = parser.parse("abc")
    return tree.pretty() == "start\n  word\tb\n  word\tc\n" and getattr(tree.children[1].meta, "column", 0) == 3


def test_tables_are_built_once(folder, built):
    assert works(kept_parser(GRAMMAR, OPTIONS))
    (file,) = folder.iterdir()
    assert (len(built), folder.stat().st_mode & 0o777) == (1, 0o700)
    before = file.read_bytes()
    assert works(kept_parser(GRAMMAR, OPTIONS))
    assert (len(built), file.read_bytes()) == (1, before)


def test_another_grammar_or_option_is_another_parser(folder, built):
    kept_parser(GRAMMAR, OPTIONS)
    other = kept_parser(GRAMMAR.replace("b-z", "b-y"), OPTIONS)
    plain = kept_parser(GRAMMAR, OPTIONS | {"propagate_positions": False})
    assert (len(built), len(list(folder.iterdir()))) == (3, 3)
    assert works(other)
    assert not works(plain)
    with pytest.raises(lark.UnexpectedInput):
        other.parse("az")


@pytest.mark.parametrize(
    "damage", [lambda whole: whole[:-1], lambda whole: b"", lambda whole: bytes([whole[0] ^ 1]) + whole[1:]]
)
def test_a_damaged_file_is_written_again(folder, built, damage):
    kept_parser(GRAMMAR, OPTIONS)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert works(kept_parser(GRAMMAR, OPTIONS))
    assert works(kept_parser(GRAMMAR, OPTIONS))
    assert (len(built), len(file.read_bytes())) == (2, len(whole))


@pytest.mark.parametrize("place", ["kernels", "kernels/grammars"])
def test_a_folder_that_others_may_write_to_is_not_used(folder, built, place, tmp_path):
    kept_parser(GRAMMAR, OPTIONS)
    (tmp_path / place).chmod(0o777)
    assert works(kept_parser(GRAMMAR, OPTIONS))
    (kept,) = folder.iterdir()
    kept.unlink()
    assert works(kept_parser(GRAMMAR, OPTIONS))
    assert (len(built), list(folder.iterdir())) == (3, [])


def test_a_folder_of_another_user_is_not_used(folder, built, monkeypatch):
    kept_parser(GRAMMAR, OPTIONS)
    found = os.stat_result((0o40700, 1, 1, 1, os.geteuid() + 1, 0, 0, 0, 0, 0))
    monkeypatch.setattr(Path, "stat", lambda place: found)
    assert works(kept_parser(GRAMMAR, OPTIONS))
    assert len(built) == 2


def test_without_a_place_tables_are_built_each_time(built, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert works(kept_parser(GRAMMAR, OPTIONS))
    assert works(kept_parser(GRAMMAR, OPTIONS))
    assert len(built) == 2
