"""BPMN 2.0: from drawn processes to flow graphs, one module for each part of the notation."""

from workflows.formats.bpmn.reading import read_bpmn
