"""Process trees as YAML or JSON text."""

from workflows.formats.tree_form.reading import read_tree
