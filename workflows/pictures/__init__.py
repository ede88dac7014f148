"""Pictures of models: SVG, from the model's own drawing or with a new layout.

Purpose: show a model, with the events of a trace or a pattern highlighted. Promises: every drawn text is escaped,
nothing is executed or fetched, the size is bounded, the same model gives the same bytes, and if a model is small
enough, every element of it is drawn.
"""
