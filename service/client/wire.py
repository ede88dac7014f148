"""The JSON objects of the API when a program runs: the typed dictionaries of ``wire.pyi``."""

from pathlib import Path
from runpy import run_path

_FOUND = run_path(str(Path(__file__).with_suffix(".pyi")), run_name=__name__)
globals().update({name: value for name, value in _FOUND.items() if not name.startswith("__")})
