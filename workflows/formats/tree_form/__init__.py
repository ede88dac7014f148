"""Reads process trees that are written as YAML or JSON."""

from workflows.formats.tree_form.reading import read_tree
