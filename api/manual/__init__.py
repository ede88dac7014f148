"""The manual at ``/manual``: the pages of ``docs`` as HTML with a search, without scripts or access to the internet."""

from api.manual.serving import MANUAL_PATHS as MANUAL_PATHS
from api.manual.serving import add_manual as add_manual
