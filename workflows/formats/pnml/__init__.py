"""Reads place/transition nets in PNML (ISO/IEC 15909-2, the grammars ``ptnet`` and ``pnmlcoremodel``)."""

from workflows.formats.pnml.reading import read_pnml
