"""Text by columns is the text of each row."""

from __future__ import annotations

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import json_contents, json_text, shown_texts

CHARACTERS = st.sampled_from(['"', "\\", "\n", "\x00", "\x1f", "\x7f", "u", "é", "😀", " "])


@given(st.lists(st.text(CHARACTERS, max_size=5), max_size=9), st.integers(0, 3))
def test_contents_are_those_of_each_text(texts, skipped):
    whole = pa.array(texts, pa.string())
    assert json_contents(whole).to_pylist() == [json_text(text)[1:-1] for text in texts]
    part = whole[skipped:]
    assert json_contents(part).to_pylist() == [json_text(text)[1:-1] for text in texts[skipped:]]


@pytest.mark.parametrize("code", range(128))
def test_every_character_is_escaped_as_json_has_it(code):
    text = f"a{chr(code)}{chr(code)}b"
    assert json_contents(pa.array([text, "c"], pa.string())).to_pylist() == [orjson.dumps(text).decode()[1:-1], "c"]


def test_numbers_and_dictionaries_are_shown_as_texts():
    assert shown_texts(pa.array([10, -1, 2**60])).to_pylist() == ["10", "-1", str(2**60)]
    assert shown_texts(pa.array(["b", "a", "b"]).dictionary_encode()).to_pylist() == ["b", "a", "b"]
