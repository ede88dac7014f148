"""The manual at ``/manual``: the pages of ``docs`` as HTML, with a search.

It needs neither scripts nor internet access.
"""

from api.manual.serving import MANUAL_PATHS as MANUAL_PATHS
from api.manual.serving import add_manual as add_manual
