"""The executable meaning of patterns: slow, obvious, and the standard for the kernel.

Written from sections 3 to 6 of ``docs/semantics.md`` alone, over the syntax tree: skeletons (``skeletons``), their
conditions (``layout``), distinct events for their occurrences (``bindings``), each rule of section 4.3 on the finished
tree (``rules``), emission (``emission``) and timeouts (``partials``). Only the definition of JSON values is shared with
the matcher.
"""

from nfa.reference.emission import FoundMatch
from nfa.reference.outcome import ReferenceResult, reference_matches, reference_outcome
from nfa.reference.partials import FoundPartial
from nfa.reference.traces import split_traces
from nfa.reference.values import takes
