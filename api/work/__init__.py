"""Bounded work: requests of unknown cost, answered by workers within limits of time, memory and the answer's size.

A process that exceeds a limit is killed and replaced; the answer to the request names the limit. A process is also
killed when its client disconnects. The operations that are answered this way are marked with ``bounded``.
"""

from api.work.jobs import Job
from api.work.middleware import BoundedWork, bounded, is_bounded
from api.work.pool import WorkPool
