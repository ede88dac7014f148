"""The pattern language: text and JSON to a checked syntax tree, and back to both."""
