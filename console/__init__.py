"""The web console: pages on which people watch, query and control a running service.

Purpose: overview, alerts, transactions, process, patterns and webhooks in a browser. Promises: the console is a
separate process. It calls only the public HTTP API, through ``forestall.AsyncClient``, with the rights of the API key
that a person logs in with. No page needs the internet. The server renders the pages, and small scripts refresh them.
"""

from console.app import create_console as create_console
from console.serving import serve as serve
