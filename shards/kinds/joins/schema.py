"""The JSON schema of a join's document; ``joins.read_join`` checks the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAMES = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_WINDOW = {
    "description": "A duration such as '24 h', {last: N} for the newest events of each key, or none.",
    "oneOf": [
        {"type": "string"},
        {
            "type": "object",
            "required": ["last"],
            "properties": {"last": {"type": "integer", "minimum": 1}},
            "additionalProperties": False,
        },
    ],
}
_CLOSING = {
    "oneOf": [
        {"enum": ["unique", "clustered", "end", "punctuation", "workflow"]},
        {
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"type": "string"}},
            "additionalProperties": False,
        },
    ]
}
_INPUT = {
    "type": "object",
    "required": ["stream"],
    "properties": {
        "stream": {"type": "string"},
        "as": {"type": "string", "description": "By which return names it (default: the name of the stream)."},
        "type": {**_NAMES, "description": "Event types that take part (default: all)."},
        "key": {"type": "string", "description": "Path of the join key (default: the correlation key)."},
        "closed_by": {
            "description": "When a key of the input is finished: unique, clustered, end, punctuation, workflow, "
            "{type: TYPE}, or a list of these.",
            "oneOf": [*_CLOSING["oneOf"], {"type": "array", "items": _CLOSING}],
        },
        "window": _WINDOW,
        "retractions": {
            "type": "string",
            "description": "For a derived stream: take (default) removes retracted events, a duration such as '2 h' "
            "does so for at least this long, event treats retractions as ordinary events.",
        },
    },
    "additionalProperties": False,
}

JOIN_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "inputs": {"type": "array", "minItems": 2, "maxItems": 16, "items": _INPUT},
        "window": {
            **_WINDOW,
            "description": "A duration such as '24 h', {last: N} for the newest events of each key, or none, of all "
            "inputs that have no window of their own.",
        },
        "emit": {"enum": ["each", "on_close"], "description": "An event per combination, or per finished key."},
        "outer": {
            **_NAMES,
            "description": "Inputs that may be absent; what lacks them is emitted once no event of them can join it.",
        },
        "where": {
            "type": "string",
            "description": "A condition between the inputs, as in WHERE of a pattern: 'p.amount = o.amount'. A "
            "combination exists only where it holds.",
        },
        "return": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
        "type": {"type": "string", "description": "Type of the derived events (default: the name)."},
        "memory": {
            "type": "object",
            "description": "At most this many events of each shard are in memory, the others on disk; lets a join be "
            "that nothing else bounds (default: all are in memory).",
            "required": ["rows"],
            "properties": {
                "rows": {"type": "integer", "minimum": 1},
                "spill": {"type": "boolean", "description": "Has to be true without wait: auto."},
            },
            "additionalProperties": False,
        },
        "wait": {
            "enum": ["none", "auto"],
            "description": "auto: keys are whole numbers that rise roughly; how far out of order they are is measured, "
            "and keys that are not expected any more are finished by that (default: none).",
        },
        "results": {
            "type": "object",
            "description": "How many results it may lead to.",
            "properties": {
                "per_event": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "By one event of a key at once; the others are not emitted (default: 10000).",
                },
                "average": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "By each event on average (default: 20).",
                },
                "ahead": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Beyond that average in one shard; with more it is suspended (default: 200000).",
                },
            },
            "additionalProperties": False,
        },
        "late": {
            "enum": ["report", "drop", "fail"],
            "description": "What to do with an event of a finished key: a dead letter, nothing, or suspend the join.",
        },
    },
    "required": ["inputs", "return"],
    "examples": [
        {
            "name": "paid",
            "inputs": [
                {"stream": "orders", "as": "o", "closed_by": "unique"},
                {"stream": "payments", "as": "p", "key": "order", "closed_by": {"type": "Last"}},
            ],
            "window": "24 h",
            "return": {"order": "id(o)", "payment": "id(p)"},
        }
    ],
}
