"""Workflows: what the processes behind the events look like.

Purpose: models of workflows (block-structured process trees for now), the constraints and end events that follow from
them, and simulated streams of their traces. Promises: models are immutable, derived constraints are all and only those
of their kinds that hold, a seed determines a stream, and nothing here knows where a model was loaded from.
"""

from workflows.attributes import Attribute, IntegerAttribute, TextAttribute, ThresholdAttribute
from workflows.derivation import derive_constraints
from workflows.errors import InvalidWorkflow, UnderivableWorkflow, WorkflowError
from workflows.order_fulfilment import OrderSettings, order_fulfilment
from workflows.simulation import SimulationSettings, sample_trace, simulate
from workflows.tree import (
    Activity,
    ExclusiveChoice,
    Loop,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
    activity_names,
    iterate_activities,
)
from workflows.workload import OrderWorkload, generate_events

__all__ = [
    "Activity",
    "Attribute",
    "ExclusiveChoice",
    "IntegerAttribute",
    "InvalidWorkflow",
    "Loop",
    "OrderSettings",
    "OrderWorkload",
    "Parallel",
    "ProcessTree",
    "Sequence",
    "Silent",
    "SimulationSettings",
    "TextAttribute",
    "ThresholdAttribute",
    "UnderivableWorkflow",
    "WorkflowError",
    "activity_names",
    "derive_constraints",
    "generate_events",
    "iterate_activities",
    "order_fulfilment",
    "sample_trace",
    "simulate",
]
