"""The pages for people: all that they load is served here, to everybody, and nothing from elsewhere is let in."""

import re
from base64 import b64encode
from hashlib import sha256
from urllib.parse import urljoin, urlsplit

import pytest

from api.manual import MANUAL_PATHS
from api.pages import PAGE_PATHS

pytestmark = pytest.mark.redis

PAGES = ("/docs", "/redoc")


def named_in(page):
    """Addresses that a page names."""
    return re.findall(r"""(?:href|src|spec-url)=["']([^"']+)|\burl: '([^']+)'""", page)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_names_no_other_host_and_what_it_names_is_there(stranger, path):
    page = stranger.get(path)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    named = [first or second for first, second in named_in(page.text)]
    assert len(named) >= 3
    for address in named:
        assert not urlsplit(address).netloc
        answer = stranger.get(urljoin(path, address))
        assert answer.status_code == 200
        assert len(answer.content) > 1_000


@pytest.mark.parametrize("path", PAGES)
def test_the_policy_of_a_page_lets_in_its_own_scripts_only(stranger, path):
    page = stranger.get(path)
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    inline = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
    digests = [f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in inline]
    assert policy["script-src"].split() == ["'self'", *digests]
    assert (policy["default-src"], policy["connect-src"], policy["frame-ancestors"]) == ("'none'", "'self'", "'none'")
    assert page.headers["x-content-type-options"] == "nosniff"


def test_what_pages_load_may_be_kept_and_is_taken_for_nothing_else(stranger):
    assets = sorted(PAGE_PATHS - {*PAGES} - MANUAL_PATHS)
    assert len(assets) == 5
    for path in assets:
        answer = stranger.get(path)
        assert (answer.status_code, answer.headers["x-content-type-options"]) == (200, "nosniff")
        assert "max-age" in answer.headers["cache-control"]
        again = stranger.get(path, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["none.js", "..%2f__init__.py", "..%2Fcore.py", "%2e%2e/core.py"])
def test_nothing_else_is_beside_them(http, check_problem, name):
    check_problem(http.get(f"/docs/assets/{name}"), 404, "not-found")
