"""Lua files: their headers, and how values are bound to the names there."""

import sys
import zipfile

import pytest

from streams import read_script


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of scripts; write its files with the function that this is."""
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / f"package_of_{tmp_path.name}"
    (folder / "room").mkdir(parents=True)
    (folder / "parts").mkdir()
    (folder / "__init__.py").touch()

    def write(**files):
        for name, text in files.items():
            (folder / f"{name.replace('__', '/')}.lua").write_text(text)
        return folder.name

    yield write
    sys.modules.pop(folder.name, None)


HEADER = "--! keys: layout, shards*\n--! args: kind\n--! args: body, rest*\nreturn kind\n"


def test_a_name_is_a_local_variable_and_a_star_makes_a_list(package):
    script = read_script(package(room__append=HEADER), "room/append")
    assert (script.keys, script.args) == (("layout", "shards*"), ("kind", "body", "rest*"))
    assert script.text.splitlines()[:5] == [
        "local layout = KEYS[1]",
        "local shards = {} for i = 2, #KEYS do shards[i - 1] = KEYS[i] end",
        "local kind = ARGV[1]",
        "local body = ARGV[2]",
        "local rest = {} for i = 3, #ARGV do rest[i - 2] = ARGV[i] end",
    ]


def test_values_are_bound_in_the_order_of_the_header(package):
    script = read_script(package(room__append=HEADER), "room/append")
    bound = script.bind({"rest": [1, b"r"], "body": b"b", "kind": 7, "shards": ("s", "t"), "layout": "l"})
    assert bound == (["l", "s", "t"], [7, b"b", 1, b"r"])


def test_parts_come_first(package):
    name = package(room__append="--! uses: one, two\nreturn one()", parts__one="-- 1", parts__two="-- 2")
    assert read_script(name, "room/append").text == "-- 1\n-- 2\n--! uses: one, two\nreturn one()"


def test_a_part_comes_after_those_that_it_uses_and_once(package):
    texts = {"room__append": "--! uses: one, two\nreturn one()", "parts__one": "--! uses: two", "parts__two": "-- 2"}
    assert read_script(package(**texts), "room/append").text == "-- 2\n--! uses: two\n--! uses: one, two\nreturn one()"


def test_a_part_may_be_beside_the_scripts_of_the_log(package):
    name = package(room__append="--! uses: leaving\nreturn is_gone(1, 2)")
    assert read_script(name, "room/append").text.startswith("-- is_gone(routes, stream)")


GOOD = {"layout": "l", "shards": [], "kind": "k", "body": "b", "rest": []}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"layout": "l"}, r"no value for \['body', 'kind', 'rest', 'shards'\] and does not know \[\]"),
        ({**GOOD, "more": "m"}, r"no value for \[\] and does not know \['more'\]"),
        ({**GOOD, "shards": "s"}, r"takes shards\* .* given 's'"),
        ({**GOOD, "rest": b"r"}, r"takes rest\* .* given b'r'"),
        ({**GOOD, "kind": ["k"]}, r"takes kind .* given \['k'\]"),
    ],
)
def test_what_does_not_fit_the_header_is_refused(package, given, message):
    script = read_script(package(room__append=HEADER), "room/append")
    with pytest.raises(TypeError, match=message):
        script.bind(given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--! key: layout\n", "room/bad has the header '--! key: layout'"),
        ("--! keys: shards*, layout\n", "room/bad has a list before its last name"),
        ("--! args: rest*\n--! args: kind\n", "room/bad has a list before its last name"),
    ],
)
def test_a_header_that_cannot_be_read_is_refused(package, text, message):
    with pytest.raises(ValueError, match=message):
        read_script(package(room__bad=text), "room/bad")


def test_a_script_is_read_from_an_archive_as_well(tmp_path, monkeypatch):
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("packed_scripts/__init__.py", "")
        packed.writestr("packed_scripts/room/append.lua", HEADER)
    monkeypatch.syspath_prepend(str(archive))
    assert read_script("packed_scripts", "room/append").text.endswith(HEADER)
    sys.modules.pop("packed_scripts")
