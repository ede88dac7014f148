"""XML from strangers: read within bounds, or refused with the place."""

import os
import random
import tracemalloc
from collections.abc import Callable, Mapping

import pytest

from workflows.errors import ModelRefused
from workflows.formats.safe_xml import XmlLimits, looks_like_xml, parse_xml, root_name

BILLION_LAUGHS = b"""<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
<definitions>&c;</definitions>"""
QUADRATIC = b'<!DOCTYPE a [<!ENTITY b "' + b"x" * 50_000 + b'">]><a>' + b"&b;" * 50_000 + b"</a>"
EXTERNAL = b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'
EXTERNAL_DTD = b'<!DOCTYPE a SYSTEM "http://localhost:9/a.dtd"><a/>'
PARAMETER = b'<!DOCTYPE a [<!ENTITY % b SYSTEM "http://localhost:9/b"> %b;]><a/>'


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("utf-8", 'encoding="UTF-8"'),
        ("utf-16", 'encoding="UTF-16"'),
        ("utf-16-be", 'encoding="UTF-16BE"'),
        ("iso-8859-1", 'encoding="ISO-8859-1"'),
        ("windows-1252", 'encoding="windows-1252"'),
    ],
)
def test_encodings_are_those_declared(encoding: str, declared: str) -> None:
    content = f'<?xml version="1.0" {declared}?><a b="Prüfung"/>'.encode(encoding)
    assert parse_xml(content).get("b") == "Prüfung"
    assert looks_like_xml(content)
    assert root_name(content) == "a"


def test_names_carry_their_namespace() -> None:
    root = parse_xml(b'<x:a xmlns:x="urn:x"><b>text</b></x:a>')
    assert root.tag == "{urn:x}a"
    assert [(child.tag, child.text) for child in root] == [("b", "text")]
    assert root_name(b'<x:a xmlns:x="urn:x"><never closed') == "{urn:x}a"


@pytest.mark.parametrize("content", [BILLION_LAUGHS, QUADRATIC, EXTERNAL, EXTERNAL_DTD, PARAMETER])
def test_document_types_and_entities_are_refused(content: bytes) -> None:
    for read in (parse_xml, root_name):
        with pytest.raises(ModelRefused, match="a document type or entities, which are refused; remove the DOCTYPE"):
            read(content)


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        (b"", "line 1, column 1", "no element found"),
        (b"   ", "line 1, column 4", "no element found"),
        (b"<a>\n  <b></a>", "line 2, column 8", "mismatched tag"),
        (b"<a><b>", "line 1, column 7", "no element found"),
        (b"<a>&unknown;</a>", "line 1, column 4", "undefined entity"),
        (b"<a/>trailing", "line 1, column 5", "junk after document element"),
        (b"\x00\x01\x02", "line 1, column 1", "not well-formed"),
        (b'<?xml version="1.0" encoding="klingon"?><a/>', "", "unknown encoding: klingon; save it as UTF-8"),
        (b'<?xml version="1.0" encoding="shift_jis"?><a/>', "", "an unsupported encoding"),
        (b"<a>\xff</a>", "line 1, column 4", "not well-formed"),
    ],
)
def test_what_is_no_xml_is_refused_with_its_place(content: bytes, place: str, message: str) -> None:
    with pytest.raises(ModelRefused, match=message) as caught:
        parse_xml(content)
    assert caught.value.problems[0][0] == place


def test_what_is_no_root_is_refused_when_only_that_is_asked_for() -> None:
    with pytest.raises(ModelRefused, match="no element found"):
        root_name(b"<!-- nothing else -->")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<a>" * 11, "nested more than 10 deep"),
        (b"<a>" + b"<b/>" * 20 + b"</a>", "more than 20 elements"),
        (b"<a>" + b" " * 2_000 + b"</a>", "the file has 2,007 bytes; at most 1,000 are read"),
        (b'<a xmlns:p="' + b"u" * 51 + b'"/>', "the namespace of prefix 'p' has more than 50 characters"),
    ],
)
def test_each_limit_has_its_words(content: bytes, message: str) -> None:
    limits = XmlLimits(size_bytes=1_000, elements=20, depth=10, namespace_chars=50)
    with pytest.raises(ModelRefused, match=message):
        parse_xml(content, limits)


GARBAGE: Mapping[str, Callable[[], bytes]] = {  # made by its test: it would stay in memory, and be made for any other
    "many attributes": lambda: b"<a " + b" ".join(b'a%d=""' % number for number in range(300_000)) + b"/>",
    "a long value": lambda: b'<a b="' + b"x" * 9_900_000 + b'"/>',
    "a long comment": lambda: b"<a><!--" + b"x" * 9_900_000 + b"--></a>",
    "deep": lambda: b"<a>" * 3_300_000,
    "many elements": lambda: b"<a>" + b"<b/>" * 2_400_000,
    "brackets": lambda: b"<" * 10_000_000,
    "a long name": lambda: b"<" + b"a" * 9_999_999,
    "a long instruction": lambda: b"<?a " + b"a" * 9_999_990,
    "spaces": lambda: b" " * 10_000_000,
    "zeros": lambda: bytes(10_000_000),
    "random": lambda: random.Random(5).randbytes(10_000_000),
    "a long namespace": lambda: b'<a xmlns="' + b"x" * 500_000 + b'">' + b"<b/>" * 2_000_000,
    "a long end": lambda: b"<a/>" + b"x" * 10_000_000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_ten_megabytes_of_garbage_are_refused_in_bounded_memory(name: str) -> None:
    content = GARBAGE[name]()
    tracemalloc.start()
    with pytest.raises(ModelRefused):
        parse_xml(content)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 200_000_000


def test_large_texts_are_no_harm() -> None:
    root = parse_xml(b"<a><![CDATA[" + b"x" * 5_000_000 + b"]]></a>")
    assert len(root.text or "") == 5_000_000


def test_garbage_is_refused_or_read_but_never_crashes() -> None:
    source = random.Random(17)
    seed = b'<?xml version="1.0"?><definitions xmlns="urn:x"><process id="p"><task id="t" name="A&amp;B"/></process>'
    outcomes = set()
    for _ in range(2_000):
        content = bytearray(seed + b"</definitions>")
        for _ in range(source.randrange(4)):
            place = source.randrange(len(content))
            content[place : place + source.randrange(3)] = source.randbytes(source.randrange(3))
        try:
            parse_xml(bytes(content))
            outcomes.add("read")
        except ModelRefused:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


def test_only_angle_brackets_look_like_xml() -> None:
    assert looks_like_xml("\ufeff  <a/>".encode("utf-16-le"))
    assert not looks_like_xml(b"name: order")
    assert not looks_like_xml(b'{"name": "order"}')
    assert not looks_like_xml(os.linesep.encode())
