"""Questions over the events of a window, whose groups and filters are not known beforehand.

Source: the parameterised group-by with the IMP index; see ``ring`` (the index), ``costs``, ``choosing`` and ``tuning``
(its configuration), ``question_index`` (the front).
"""

from aggregates.asking.answers import Answer, merged
from aggregates.asking.declared import KEY, columns_of, held_window, read_question
from aggregates.asking.question_index import QuestionIndex
from aggregates.asking.questions import AskedValue, HeldWindow, Question
