"""Published algorithms that the product does not use, with tests and experiments that show why.

Purpose: evidence. The product solves the same problems in another way; ``README.md`` has a row per algorithm: paper,
section, file, tables reproduced, what the product uses instead. Promises: no package imports this one, and it is not
shipped; ``make literature`` runs its tests, ``scripts/literature bench`` its experiments. Its modules may import inner
modules of ``joins``: ``make check`` fails when a change of one breaks them.
"""
