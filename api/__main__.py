"""``python -m api``: the API as a process, with the settings of the environment."""

from __future__ import annotations

import sys

import uvicorn

from api.app import create_app
from service import SettingsInvalid, configure_logs, end_with_parent, load_settings


def main() -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status."""
    try:
        settings = load_settings()
    except SettingsInvalid as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    configure_logs(settings.log_level)
    if settings.parent_pid is not None:
        end_with_parent(settings.parent_pid)
    uvicorn.run(
        create_app(settings),
        host=settings.api_host,
        port=settings.api_port,
        log_config=None,
        access_log=False,
        server_header=False,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
