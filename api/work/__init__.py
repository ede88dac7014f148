"""Work that is not known to be small: done by worker processes, within limits of time, memory and the answer's size.

A process that is beyond a limit is killed and another one takes its place; the request is answered with what the limit
was. So it is when its client has gone. The operations that are answered this way are marked with ``bounded``.
"""

from api.work.jobs import Answer, Job
from api.work.middleware import BoundedWork, bounded, is_bounded
from api.work.pool import WorkPool

__all__ = ["Answer", "BoundedWork", "Job", "WorkPool", "bounded", "is_bounded"]
