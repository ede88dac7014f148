"""The typed dictionaries of the API's JSON objects, which are defined at run time from ``wire.pyi``."""

from pathlib import Path
from runpy import run_path

_TYPES = run_path(str(Path(__file__).with_suffix(".pyi")), run_name=__name__)
globals().update({name: value for name, value in _TYPES.items() if not name.startswith("__")})
