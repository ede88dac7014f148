"""Questions over the events of a window. Their groups and filters need not be known beforehand.

``ring`` has the index, ``costs``, ``choosing`` and ``tuning`` choose its configuration, and ``question_index`` answers
questions. Source: the parameterised group-by with the IMP index, whose partitions have bits of attribute codes as
addresses.
"""

from aggregates.asking.answers import Answer, merged
from aggregates.asking.declared import KEY, columns_of, held_window, read_question
from aggregates.asking.question_index import QuestionIndex
from aggregates.asking.questions import AskedValue, HeldWindow, Question
