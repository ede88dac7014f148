"""The checks of ``forestall doctor``, which examine this machine, the settings, Redis, Spark, and a running service.

Each check returns findings, which have a subject, a verdict, an observation and advice. Checks change nothing. If a
prerequisite of a check is missing, the check is skipped.
"""

from service.doctor.examination import examine
from service.doctor.findings import Finding, Verdict, worst
from service.doctor.machine import EVERYTHING, size_of
from service.doctor.server import at_risk
