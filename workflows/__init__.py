"""Workflows: models of the processes that produce the events.

Purpose: read models of processes that are drawn (BPMN), written (trees) or given as Petri nets; derive constraints, end
events and an automaton; simulate streams; mine constraints from past logs; check conformance; draw pictures.

Promises: models are immutable. Constraints hold on every complete trace. A result names the method by which it was
found. A seed determines a stream. The package does not know who stores a model or which stream follows it.
"""

from workflows.attributes import (
    Attribute,
    BooleanAttribute,
    ChoiceAttribute,
    ConstantAttribute,
    ExponentialAttribute,
    IntegerAttribute,
    NormalAttribute,
    TextAttribute,
    ThresholdAttribute,
    UniformAttribute,
)
from workflows.compiling import CompiledWorkflow, compile_workflow, playable
from workflows.conformance import Conformance, LogConformance, check_log, check_trace
from workflows.discovery.mined import LogSummary, MinedConstraints, MiningSettings, kind_of
from workflows.discovery.mining import mine
from workflows.discovery.violations import count_violations
from workflows.durations import (
    Duration,
    ExponentialDuration,
    FixedDuration,
    NormalDuration,
    UniformDuration,
    parse_duration_us,
)
from workflows.errors import AutomatonTooLarge, InvalidWorkflow, ModelRefused, UnsoundWorkflow, WorkflowTooLarge
from workflows.formats import read_mapping, read_model
from workflows.limits import CompileLimits
from workflows.model import ModelFormat, ModelNotice, ReadOptions, WorkflowModel
from workflows.order_fulfilment import OrderSettings, OrderWorkload, generate_events, order_fulfilment
from workflows.pictures.drawing import draw
from workflows.pictures.series import Panel, draw_series
from workflows.relations.compositional import derive_constraints
from workflows.relations.cover import minimal_cover
from workflows.relations.extraction import Extraction, Method
from workflows.simulation import (
    AutomatonWalk,
    Noise,
    NoiseCounts,
    NoiseSettings,
    SimulationSettings,
    sample_timed,
    sample_trace,
    simulate,
)
from workflows.tree import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Instances,
    Loop,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
    activity_names,
    iterate_activities,
)
