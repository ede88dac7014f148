"""The routes of the manual: pages, pictures, and the search."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from api.manual.rendering import PICTURES, Section, addresses, pictures, rendered, sections_of
from api.manual.searching import MOST_CHARACTERS, search

MANUAL: Final = "/manual"
_SEARCH: Final = "search"
_PAGES: Final = addresses()
_PICTURES: Final = pictures()
MANUAL_PATHS: Final = frozenset(
    {MANUAL, f"{MANUAL}/{_SEARCH}", *(f"{MANUAL}/{address}" for address in (*_PAGES, *_PICTURES))}
)
_FEWEST_HEADINGS: Final = 3
_LISTED_LEVEL: Final = 2

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881 }
body { font: 16px/1.6 system-ui, sans-serif; margin: 0 }
header { display: flex; gap: 1.5rem; align-items: center; flex-wrap: wrap; padding: .6rem 1.2rem;
border-bottom: 1px solid var(--line) }
header a { text-decoration: none } header form { margin-left: auto }
input { font: inherit; padding: .2rem .5rem; width: 16rem; max-width: 60vw }
main { display: grid; grid-template-columns: minmax(0, 48rem) 15rem; gap: 3rem; padding: 0 1.2rem 4rem;
justify-content: center }
nav { position: sticky; top: 1rem; align-self: start; max-height: 95vh; overflow: auto; font-size: .85em;
padding-top: 1.5rem }
nav ul { list-style: none; padding-left: 0 } nav li { margin: .25rem 0 }
pre { padding: .8rem 1rem; background: var(--soft); overflow-x: auto } code { font-size: .9em }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: .92em }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top }
tr:target, h2:target, h3:target { background: #fc03 } img { max-width: 100% } td code { white-space: nowrap }
a[title] { color: inherit; text-decoration: none } .piece { color: #777; margin: 0 0 1rem }
@media (max-width: 60rem) { main { grid-template-columns: minmax(0, 1fr) } nav { display: none } }
"""
_DIGEST: Final = b64encode(sha256(_STYLE.encode()).digest()).decode()
_HEADERS: Final = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_DIGEST}'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}
_FRAME: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} · Forestall</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="{root}../docs/assets/favicon.png"><style>{style}</style></head>
<body><header><a href="{root}"><strong>Forestall manual</strong></a><a href="{root}../docs">API</a>
<a href="{root}../">Service</a>
<form action="{root}search" role="search"><input type="search" name="q" maxlength="200" value="{question}"
placeholder="Search" aria-label="Search the manual"></form></header>
<main><article>{content}</article>{aside}</main></body></html>
"""


def add_manual(app: FastAPI) -> None:
    """Add the routes of the manual."""

    async def begin(_: Request) -> Response:
        return RedirectResponse("manual/")  # relative, so that it works below a proxy's path prefix

    async def show(request: Request) -> Response:
        address: str = request.path_params["address"]
        if address == _SEARCH:
            question = request.query_params.get("q", "")[:MOST_CHARACTERS]
            return HTMLResponse(await run_in_threadpool(_results_page, question), headers=_HEADERS)
        if address in _PICTURES:
            path = _PICTURES[address]
            picture = await run_in_threadpool(path.read_bytes)
            return Response(picture, media_type=PICTURES[path.suffix], headers=_HEADERS)
        if address not in _PAGES:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return HTMLResponse(await run_in_threadpool(_framed, address), headers=_HEADERS)

    app.add_route(MANUAL, begin, include_in_schema=False)
    app.add_route(f"{MANUAL}/{{address:path}}", show, include_in_schema=False)


@cache
def _sections() -> dict[str, list[Section]]:
    return {address: sections_of(path) for address, path in _PAGES.items()}


@cache
def _framed(address: str) -> str:
    sections = _sections()[address]
    parts = [section for section in sections if section.level == _LISTED_LEVEL]
    listed = "".join(f'<li><a href="#{escape(section.anchor)}">{escape(section.heading)}</a></li>' for section in parts)
    aside = f"<nav><strong>On this page</strong><ul>{listed}</ul></nav>" if len(parts) >= _FEWEST_HEADINGS else ""
    return _in_frame(sections[0].heading, rendered(_PAGES[address], sections), address.count("/"), aside)


def _results_page(question: str) -> str:
    hits, left_out = search(_sections(), question)
    items = "".join(
        f'<p><a href="./{escape(hit.address)}">{escape(hit.title)}</a>'
        f"{'' if hit.heading == hit.title else ' · ' + escape(hit.heading)}</p>"
        f'<p class="piece">{escape(hit.piece)}</p>'
        for hit in hits
    )
    nothing = f"<p>No section has all of these words: {escape(question)}.</p>" if question.strip() else ""
    cut = f"<p>{left_out}</p>" if left_out else ""
    return _in_frame("Search", f"<h1>Search</h1>{items or nothing}{cut}", 0, question=question)


def _in_frame(title: str, content: str, depth: int, aside: str = "", *, question: str = "") -> str:
    return _FRAME.format(
        title=escape(title),
        style=_STYLE,
        root="../" * depth or "./",
        question=escape(question),
        content=content,
        aside=aside,
    )
