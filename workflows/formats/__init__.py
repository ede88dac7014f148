"""The forms in which models are read, with one reader each: BPMN, PNML, process trees.

Promises: files are untrusted, so reading is bounded in time and memory and opens nothing else; a model is read with its
meaning or rejected, with all problems and the elements that they are about.
"""

from workflows.formats.mapping import read_mapping
from workflows.formats.pnml import read_pnml
from workflows.formats.reading import read_model
from workflows.formats.tree_form import read_tree
