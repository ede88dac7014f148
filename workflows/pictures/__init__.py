"""Pictures of models: SVG, from the model's own drawing or laid out again.

Purpose: what a model looks like, with the events of a trace or a pattern highlighted. Promises: every drawn text is
escaped, nothing is executed or fetched, the size is bounded, the same model gives the same bytes, and every element of
a model that is small enough is there.
"""
