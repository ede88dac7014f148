"""The command ``forestall``."""

from __future__ import annotations

import sys

from forestall.extras import advice_on
from service import cli

_REFUSED = 2


def main() -> None:
    """Run the command line. If a package is missing, name the extra that installs it."""
    try:
        cli.main()
    except ModuleNotFoundError as error:
        advice = advice_on(error)
        if advice is None:
            raise
        sys.stderr.write(f"error: this command needs more: {advice}\n")
        sys.exit(_REFUSED)


if __name__ == "__main__":
    main()
