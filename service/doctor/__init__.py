"""The checks of ``forestall doctor``: this machine, the settings, Redis, Spark, and a running service.

Each check gives findings: the subject, the verdict, what was found and what to do. Nothing is changed, and
checks that need something missing are left out.
"""

from service.doctor.examination import examine
from service.doctor.findings import Finding, Verdict, worst
from service.doctor.machine import EVERYTHING, size_of
from service.doctor.server import at_risk
