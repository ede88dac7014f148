"""The pattern language: converts text and JSON to a checked syntax tree, and the tree back to both."""
