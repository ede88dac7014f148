"""Checks of ``forestall doctor``: this machine, the settings, Redis, Spark, and a running service.

Each check returns findings: subject, verdict, observation and advice. Checks change nothing; a check whose
prerequisite is missing is left out.
"""

from service.doctor.examination import examine
from service.doctor.findings import Finding, Verdict, worst
from service.doctor.machine import EVERYTHING, size_of
from service.doctor.server import at_risk
