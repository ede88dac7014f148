"""The JSON schema of an aggregate's document; ``aggregates.read_aggregate`` checks what the schema cannot express."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

AGGREGATE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "of": {"type": "string", "description": "The stream whose events count."},
        "where": {
            "type": "string",
            "description": "The condition of the events that count, as in patterns: \"type = 'Refund' AND amount > 0\" "
            "(default: all).",
        },
        "by": {
            "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "description": "The attributes that form groups; key is the correlation key, type the event type (default: "
            "one group).",
        },
        "for_each_row_of": {
            "type": "string",
            "description": "A table whose rows are the groups: an event counts for each row whose columns, named as in "
            "'by', have its values; an empty value matches any. 'having' reads row.COLUMN (default: none).",
        },
        "values": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"type": "string"},
            "description": "What is computed, by name: count(), count(x), count_if(x > 1), sum, avg, min, max, stddev, "
            "distinct, first, last, quantile(x, 0.95).",
        },
        "window": {
            "description": "A duration such as '1 h' (sliding over event time), {last: N}, {tumbling: DURATION}, "
            "{hopping: DURATION, every: DURATION}, {session: GAP}, or transaction; "
            "with for_each_row_of {row: COLUMN, most: DURATION}, the duration of each row.",
            "oneOf": [{"type": "string"}, {"type": "object", "minProperties": 1}],
        },
        "having": {
            "type": "string",
            "description": "A condition over the values; a group is reported when it becomes true. before(n, 7 d) is a "
            "value of the group 7 days before, all(n) the value over all groups.",
        },
        "clear": {"type": "boolean", "description": "Also report when the condition becomes false."},
        "events": {
            "type": "integer",
            "minimum": 0,
            "maximum": 100,
            "description": "How many of the newest events of the group derived events have (default: 0).",
        },
        "type": {"type": "string", "description": "Type of the derived events (default: the name)."},
        "ask": {
            "type": "object",
            "description": "Answers questions at any time over the same window: 'by' are the attributes by which they "
            "may group and filter. Needs a sliding window.",
            "required": ["by"],
            "properties": {"by": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}},
            "additionalProperties": False,
        },
        "memory": {
            "type": "object",
            "description": "The most events in windows and earlier values for 'before' in each shard "
            "(default: 2000000).",
            "required": ["rows"],
            "properties": {"rows": {"type": "integer", "minimum": 1}},
            "additionalProperties": False,
        },
    },
    "required": ["of", "values", "window"],
    "examples": [
        {
            "name": "failed_logins",
            "of": "logins",
            "where": "type = 'LoginFailed'",
            "by": ["source_ip"],
            "values": {"n": "count()", "users": "distinct(user)"},
            "window": "1 h",
            "having": "n >= 20 AND users > 5",
        }
    ],
}
