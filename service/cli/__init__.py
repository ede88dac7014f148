"""The command line ``forestall``: one module per command, composed in ``app``, which ``starting`` imports.

Results are printed on standard output, progress and errors on standard error. Exit status: 0 for success, 1 for a
negative result, 2 for a call that cannot be carried out, 3 for a service that does not answer.
"""

from service.cli.starting import main
