"""Pictures: models, from their own drawing or with a new layout, and numbers over time; as SVG.

Purpose: show a model, with the events of a trace or a pattern highlighted, and the values of groups as lines. Promises:
every drawn text is escaped, nothing is executed or fetched, the size is bounded, the same input gives the same bytes,
and if a model is small enough, every element of it is drawn.
"""
