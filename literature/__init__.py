"""Published algorithms that the product does not use, with the tests and experiments that say why.

Purpose: evidence. The product solves the same problems in another way; ``README.md`` has a row per algorithm: paper,
section, file, tables reproduced, what the product uses instead. Promises: no package imports this one, and it is not
shipped; ``make literature`` runs its tests, ``scripts/literature bench`` its experiments. Its modules may import inner
modules of ``joins``: ``make check`` says when one of these changes.
"""
