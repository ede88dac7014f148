"""Pictures in SVG: models, in their own drawing or with a new layout, and numbers over time.

Purpose: show a model, with the events of a trace or a pattern highlighted, and show the values of groups as lines.

Promises: every drawn text is escaped. A picture executes and fetches nothing, and its size is bounded. The same input
gives the same bytes. If a model is small enough, all its elements are drawn.
"""
