"""Reads BPMN 2.0: drawn processes become flow graphs. Each module handles one part of the notation."""

from workflows.formats.bpmn.reading import read_bpmn
