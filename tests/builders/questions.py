"""Events, questions and indexes for tests of questions."""

import numpy as np
from hypothesis import strategies as st

from aggregates.asking import AskedValue, HeldWindow, Question, QuestionIndex

ATTRIBUTES, MEASURES = ("user", "region", "kind"), ("price", "size")
VALUES = {
    "n": AskedValue("count"),
    "users": AskedValue("distinct", "user"),
    "known": AskedValue("count", "region"),
    "prices": AskedValue("count", "price"),
    "total": AskedValue("sum", "price"),
    "mean": AskedValue("avg", "size"),
    "least": AskedValue("min", "price"),
    "most": AskedValue("max", "size"),
    "kinds": AskedValue("sum", "kind"),
    "greatest": AskedValue("max", "user"),
    "middle": AskedValue("avg", "user"),
}


def held(span_us=100):
    return HeldWindow(attributes=ATTRIBUTES, measures=MEASURES, span_us=span_us)


def columns_of(events):
    names = (*ATTRIBUTES, *MEASURES)
    return {name: [data.get(name) for _, data in events] for name in names}


def insert(index, events):
    index.insert(np.array([time_us for time_us, _ in events], np.int64), columns_of(events))


def index_of(window, bits=(), **options):
    index = QuestionIndex(window, **options)
    if bits:
        index.configure(dict(zip(window.attributes, bits, strict=True)))
    return index


def scalars():
    return st.sampled_from([None, "ann", "bob", "", 1, 1.0, True, False, 0, 2.5, "1"])


def data():
    return st.fixed_dictionaries(
        {
            "user": scalars(),
            "region": st.sampled_from(["eu", "us", None]),
            "kind": st.integers(0, 40),
            "price": st.one_of(st.none(), st.integers(-5, 5), st.sampled_from([0.1, 0.25, 1e15, -1e15])),
            "size": st.one_of(st.none(), st.integers(0, 3)),
        }
    )


def questions():
    return st.builds(
        lambda by, where, names, window_us, until_us: Question(
            by=tuple(by),
            where=where,
            values={name: VALUES[name] for name in names},
            window_us=window_us,
            until_us=until_us,
        ),
        st.lists(st.sampled_from(ATTRIBUTES), unique=True, max_size=3),
        st.fixed_dictionaries(
            {},
            optional={"user": scalars(), "region": st.sampled_from(["eu", "us", "asia"]), "kind": st.integers(0, 41)},
        ),
        st.lists(st.sampled_from(sorted(VALUES)), unique=True, min_size=1),
        st.one_of(st.none(), st.integers(0, 40)),
        st.one_of(st.none(), st.integers(0, 80)),
    )
