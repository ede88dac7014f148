"""The process of the web console, a client of the API."""

from __future__ import annotations

import sys
from importlib import import_module

from service.process import run_process
from service.settings import Settings


def main() -> int:
    """Serve the console until SIGTERM or SIGINT. Returns the exit status of ``run_process``."""
    return run_process("console", serve_console)


def serve_console(settings: Settings) -> None:
    """Serve the console for the service in the settings until the process is stopped."""
    url = settings.url or f"http://{settings.api_host}:{settings.api_port}"
    hosts = [host.strip() for host in settings.console_hosts.split(",") if host.strip()]
    console = import_module("console.serving")  # a client of the API, above this package
    console.serve(url, settings.console_host, settings.console_port, hosts)


if __name__ == "__main__":
    sys.exit(main())
