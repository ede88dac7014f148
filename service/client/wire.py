"""The JSON objects of the API when a program runs: the typed dictionaries of ``wire.pyi``."""

from pathlib import Path
from runpy import run_path

globals().update(run_path(str(Path(__file__).with_suffix(".pyi")), run_name=__name__))
