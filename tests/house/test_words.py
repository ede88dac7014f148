"""Documents use the field's words, and each refused wording is found where it is planted."""

import pytest

from house import ROOT
from house.words import WORDS, WORDS_FOR_USERS, document_words, documents

PLANTED = [
    "Whoever calls it",
    "for those who\nwho asks",
    "It looks\nwhether all is there.",
    "This was mended.",
    "what becomes of it",
    "what came of it",
    "the event at hand",
    "the watermark of then.",
    "how it fares",
    "the gravest verdict",
    "a pattern ended early",
    "an early ending",
    "transactions that are there",
    "If it stays so, ask.",
    "every rule of the house",
    "events: They.",
    "matches are told",
    "for so many seconds",
    "rows are looked at",
    "the client goes away",
    "Path of the key; subject else.",
    "queued anew",
    "peak held instances",
    "it is no number",
    "the pattern goes on",
    "or say which",
    "it stands twice",
    "a text is wanted",
    "50 notes, which is the most",
]
KEPT = [
    "Because of now and then, nothing else.",
    "so many that it stops",
    "`whoever`, and `what becomes\nof it`",
    "```text\nhow it fares\n```\n\n`whoever`",
    "an ending, and what is told apart",
    "there is no stream, where no key is required; it is no longer kept",
]


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_use_the_words_of_the_field(document):
    path = document.relative_to(ROOT).as_posix()
    found = [str(violation) for violation in document_words(path, document.read_text(encoding="utf-8"))]
    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize("text", PLANTED)
def test_a_planted_wording_is_found_on_its_line(text):
    (violation,) = list(document_words("docs/planted.md", f"# A page\n\n{text}"))[:1]
    assert violation.line >= 3
    assert "write" in violation.message


def test_a_template_is_read_without_its_markup_and_with_the_texts_that_a_browser_shows():
    template = """{# what becomes of it #}<p id="so many">{{ item.fares }}</p>
<p>The <b>transactions</b> that are there.</p><p
  class="dense" title="At most so many.">2</p>"""
    found = document_words("console/templates/planted.html", template)
    assert sorted((one.line, one.message.partition(":")[0]) for one in found) == [
        (2, "'so many'"),
        (2, "'that are there'"),
    ]


@pytest.mark.parametrize("text", KEPT)
def test_other_wordings_are_not(text):
    assert list(document_words("docs/planted.md", text)) == []


def test_every_wording_is_planted():
    assert [word.found.pattern for word in WORDS + WORDS_FOR_USERS if not any(map(word.found.search, PLANTED))] == []
