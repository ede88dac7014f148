"""Projects: a folder of documents, and the changes that make a running service equal to it.

Purpose: read and check the documents, compare them with a service, change the service, and write the folder. Also run
the patterns of a folder over events, and its tests, without a service.

Promises: Nothing is changed before all documents are read and checked. Every change is conditional on the state from
which the plan was made. Applying an exported project changes nothing, except that a table whose rows were changed one
at a time gets a new version.
"""

from service.projects.applying import apply_plan, warnings_about
from service.projects.cases import (
    Case,
    Outcome,
    cases_of,
    event_lines,
    expectation,
    line_of,
    outcome_of,
    run_case,
    words_of,
)
from service.projects.comparing import Comparison, Difference
from service.projects.documents import Document, document_schema, read_project
from service.projects.exporting import export_project
from service.projects.local import LocalProject
from service.projects.planning import Change, Plan, plan_project
from service.projects.promises import PromiseRefused, read_promises
from service.projects.updating import update_tests
from service.runs import EVENTS, LISTS, SUSPENSIONS, Results
