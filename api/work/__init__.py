"""Bounded work: worker processes answer requests of unknown cost, within limits of time, memory and answer size.

A process that exceeds a limit is killed and replaced, and the answer names the limit. A process is also killed if its
client disconnects. The decorator ``bounded`` marks the operations that worker processes answer.
"""

from api.work.jobs import Job
from api.work.middleware import BoundedWork, bounded, is_bounded
from api.work.pool import WorkPool
