"""Readers for the forms of models: BPMN, PNML, and process trees in YAML or JSON.

Promises: files are untrusted, so reading is bounded in time and memory and opens no other file. A model is either read
with its full meaning, or rejected with a list of all problems and of the elements concerned.
"""

from workflows.formats.mapping import read_mapping
from workflows.formats.pnml import read_pnml
from workflows.formats.reading import read_model
from workflows.formats.tree_form import read_tree
