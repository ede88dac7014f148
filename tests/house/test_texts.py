"""No file names a place that exists on one machine only, or a package index."""

import re

import pytest

from house import project_files

HOSTS = [
    "".join(parts)
    for parts in (("pypi", ".org"), ("python", "hosted.org"), ("registry.", "npmjs"), ("repo1.", "maven"))
]
FOLDERS = ("work", "farm", "root", "home", "Users")
PLACE = re.compile(
    rf"(?<![\w.}}])/(?:{'|'.join(FOLDERS[:3])})/|(?<![\w.}}])/(?:{'|'.join(FOLDERS[3:])})/\w|"
    + "|".join(re.escape(host) for host in HOSTS)
    + "|"
    + r"deb\."
    + "debian"
)


def places(text):
    return [match.group() for match in PLACE.finditer(text)]


def test_files_name_no_machine_and_no_index():
    found = {}
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if hits := places(text):
            found[str(path)] = hits[:3]
    assert not found


@pytest.mark.parametrize(
    "text", [f"cd /{FOLDERS[0]}/main", f"--index https://{HOSTS[0]}/simple", f"/{FOLDERS[3]}/ann/x"]
)
def test_place_is_seen(text):
    assert places(text)


@pytest.mark.parametrize("text", ["data/work/item", "./root/x", "GET /workflows", "the home page"])
def test_other_text_is_not(text):
    assert places(text) == []
