"""The manual: every page, its links and anchors, the search, and the policy under which browsers show it."""

import posixpath
import re

import httpx
import pytest

from api import create_app
from api.manual import MANUAL_PATHS
from tests.builders.api import serving
from tests.builders.service import settings_for
from tests.builders.waiting import PATIENCE_S

PAGES = sorted(path for path in MANUAL_PATHS if not path.endswith((".png", ".svg", "/search", "/manual")))


@pytest.fixture(scope="module")
def manual():
    """A service whose Redis does not answer: the manual needs none, and no key."""
    with (
        serving(create_app(settings_for("redis://127.0.0.1:1/0", auth="keys"))) as url,
        httpx.Client(base_url=url, follow_redirects=True, timeout=PATIENCE_S) as http,
    ):
        yield http


@pytest.fixture(scope="module")
def pages(manual):
    found = {path: manual.get(path) for path in PAGES}
    assert {answer.status_code for answer in found.values()} == {200}
    return {path: answer.text for path, answer in found.items()}


def test_the_index_is_found_and_pages_need_no_script(manual):
    answer = manual.get("/manual")
    assert (answer.url.path, answer.headers["content-type"]) == ("/manual/", "text/html; charset=utf-8")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "<script" not in answer.text
    assert "<h1" in answer.text
    assert manual.get("/manual/pictures/overview-light.png").headers["content-type"] == "image/png"
    assert manual.get("/manual/../pyproject.toml").status_code in {401, 404, 503}
    assert "/manual/pyproject" not in MANUAL_PATHS


def test_every_link_leads_to_a_page_and_to_an_anchor_of_it(pages):
    anchors = {path: set(re.findall(r'id="([^"]+)"', text)) for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        article = text.partition("<article>")[2]
        for target in re.findall(r'(?:href|src)="([^"]*)"', article):
            if "://" in target or target.startswith("mailto:"):
                continue
            place, _, anchor = target.partition("#")
            leads_to = posixpath.normpath(posixpath.join(posixpath.dirname(path), place)) if place else path
            leads_to = "/manual/" if leads_to == "/manual" else leads_to
            if leads_to not in MANUAL_PATHS or (anchor and anchor not in anchors.get(leads_to, ())):
                broken.append((path, target))
    assert len(pages) > 100
    assert broken == []


def test_a_problem_links_to_its_row(manual, pages):
    answer = manual.get("/v1/streams", headers={"Authorization": "Bearer x"})
    place = re.fullmatch(r'<(/manual/[^#]+)#([^>]+)>; rel="help"', answer.headers["link"])
    assert place is not None
    assert place[2] == answer.json()["code"]
    assert f'<tr id="{place[2]}">' in pages[place[1]]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("pause before backlog", "patterns#pausing-before-the-backlog"),
        ("Lateness MEASURED", "event-time#a-lateness-that-is-measured"),
        ("webhook signature", "webhooks#verifying-the-signature"),
    ],
)
def test_sections_with_all_words_are_found_the_most_fitting_first(manual, question, first):
    text = manual.get("/manual/search", params={"q": question}).text
    assert re.findall(r'<p><a href="\./([^"]+)"', text)[0] == first


def test_what_is_searched_is_shown_as_text(manual):
    text = manual.get("/manual/search", params={"q": '<b>"zzz'}).text
    assert "No section has all of these words: &lt;b&gt;&quot;zzz." in text
    assert "<b>" not in text
    assert "<p" not in manual.get("/manual/search", params={"q": " "}).text.partition("<article>")[2]


def test_a_search_says_what_it_leaves_out(manual):
    text = manual.get("/manual/search", params={"q": "the"}).text
    assert re.search(r"<p>The first 30 of \d+ sections are listed\.</p>", text)
    assert text.count('<p class="piece">') == 30
    text = manual.get("/manual/search", params={"q": "webhook signature secret the a to of is zzz"}).text
    assert "The first 8 of 9 words were searched for." in text
    assert "The first" not in manual.get("/manual/search", params={"q": "zzz"}).text.partition("<article>")[2]
