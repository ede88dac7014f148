"""The tree keeps the rules of the house, and each rule bites on code that breaks it."""

import pytest

from house import RULES, Source, check, project_files, read_source
from house.ruleset import misused_allowances

SOURCES = [read_source(path) for path in [*project_files(".py"), *project_files(".pyi")]]
KERNEL = "nfa/kernels/planted.py"
MODULE = "nfa/planted.py"
TEST = "tests/nfa/test_planted.py"

LAZY_FRONT = """\"\"\"Purpose.\"\"\"
from lazy_loader import attach_stub
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
"""

BREAKS = [
    ("file-size", MODULE, "x = 1\n" * 601),
    ("function-size", MODULE, "def f():\n" + "    g()\n" * 50),
    ("function-size", KERNEL, "def f():\n" + "    g()\n" * 80),
    ("kernel-imports", KERNEL, "import pyarrow"),
    ("kernel-imports", KERNEL, "from nfa.automata.query import Query"),
    ("kernel-imports", KERNEL, "from streams.batch import step"),
    ("kernel-flags", KERNEL, "import numba\n@numba.njit(parallel=True)\ndef f(): ..."),
    ("kernel-flags", KERNEL, "from numba import njit\n@njit(fastmath=True)\ndef f(): ..."),
    ("kernel-flags", KERNEL, "from numba import njit\n@njit(fastmath={'nnan', 'arcp'})\ndef f(): ..."),
    ("cached-callees", KERNEL, "from numba import njit\nfrom a import g\n@njit(cache=True)\ndef f():\n    g()"),
    ("cached-callees", KERNEL, "from numba import njit\nimport a.b\n@njit(cache=True)\ndef f():\n    a.b.g()"),
    (
        "cached-callees",
        KERNEL,
        "from streams.kernels.compiling import kernel\nfrom a import g\n@kernel\ndef f():\n    g()",
    ),
    ("broad-except", MODULE, "try:\n    f()\nexcept Exception:\n    g()"),
    ("broad-except", MODULE, "try:\n    f()\nexcept (ValueError, BaseException):\n    g()"),
    ("broad-except", MODULE, "try:\n    f()\nexcept:\n    g()"),
    ("todo", MODULE, "x = 1  # TO" + "DO later"),
    ("module-state", MODULE, "cache = {}"),
    ("module-state", MODULE, "from collections import deque\nrecent: deque[int] = deque()"),
    ("module-state", MODULE, "_SEEN = set()\ndef f(x):\n    _SEEN.add(x)"),
    ("module-state", MODULE, "TABLE = {}\ndef f(x):\n    TABLE[x] = 1"),
    ("import-io", MODULE, "from pathlib import Path\nGRAMMAR = Path('g').read_text()"),
    ("import-io", MODULE, "class A:\n    text = open('g')"),
    ("environment", MODULE, "import os\nx = os.environ['A']"),
    ("environment", "service/stores/planted.py", "from os import getenv\ndef f():\n    return getenv('A')"),
    ("wall-clock", MODULE, "import time\ndef f():\n    return time.time()"),
    ("wall-clock", "constraints/planted.py", "from datetime import datetime as d\ndef f():\n    return d.now()"),
    ("wall-clock", "workflows/planted.py", "from time import time_ns as now\ndef f():\n    return now()"),
    ("inner-imports", "constraints/planted.py", "from nfa.language.parsing import parse"),
    ("inner-imports", "constraints/planted.py", "import nfa.automata.query_building"),
    ("named-modules", "service/planted.py", "import nfa.kernels"),
    ("named-modules", "service/planted.py", "from importlib import import_module\nx = import_module('console')"),
    ("named-modules", "service/planted.py", "words = ['python', '-m', 'api']"),
    ("named-modules", "service/planted.py", "def f(x):\n    return f'nfa.exercises:{x}'"),
    ("package-front", "nfa/__init__.py", '"""Purpose."""\nx = 1'),
    ("package-front", "nfa/__init__.py", "from nfa.automata.query import Query"),
    ("package-front", "nfa/__init__.py", LAZY_FRONT + "from nfa.automata.query import Query"),
    ("package-front", "nfa/__init__.py", LAZY_FRONT + "__all__ = []"),
    ("package-front", "nfa/__init__.py", LAZY_FRONT.replace('"""Purpose."""', "")),
    ("package-front", "nfa/__init__.pyi", '"""Purpose."""\nfrom .automata import Query\nx = 1'),
    ("test-asserts", TEST, "def test_it():\n    f()"),
    ("test-asserts", TEST, "def run():\n    f()\n\ndef test_it():\n    run()"),
    ("skipped-tests", TEST, "import pytest\n@pytest.mark.skip\ndef test_it():\n    assert f()"),
    ("skipped-tests", TEST, "import pytest\n@pytest.mark.xfail(reason='hard')\ndef test_it():\n    assert f()"),
    ("skipped-tests", TEST, "import pytest\ndef test_it():\n    pytest.skip('not now')"),
    ("plain-words", MODULE, '"""For whoever reads it."""'),
    ("plain-words", MODULE, 'def f():\n    raise ValueError(f"{n} are told twice")'),
    ("plain-words", "service/cli/planted.py", 'key = Option(help="Path of the key; subject else.")'),
    ("plain-words", "api/planted.py", '"""At most so\nmany of them."""'),
    ("plain-docstrings", TEST, "TYPES = 4  # what nobody reads"),
    ("plain-docstrings", KERNEL, 'def f():\n    """Stop where a match is told."""'),
    ("plain-docstrings", TEST, '"""Of those that say it, one that says what it is."""'),
    ("patient-tests", TEST, "import httpx\nwith httpx.Client(base_url=url) as client:\n    client.get('/')"),
    ("noun-names", MODULE, "found = re.search(text)"),
    ("noun-names", KERNEL, "def f(given):\n    return given + 1"),
    ("noun-names", "scripts/planted.py", "names = [one.name for one in records]"),
    ("noun-names", MODULE, "def _said(record): ..."),
    ("noun-names", MODULE, "class Found: ..."),
    ("module-state", "literature/spilling/planted.py", "cache = {}"),
    ("function-size", "literature/spilling/planted.py", "def f():\n" + "    g()\n" * 50),
    ("kernel-imports", "literature/kernels/planted.py", "import pyarrow"),
    ("test-asserts", "literature/tests/spilling/test_planted.py", "def test_it():\n    f()"),
]

KEEPS = [
    ("file-size", MODULE, "x = 1\n" * 600),
    ("function-size", MODULE, "def f():\n" + "    g()\n" * 49),
    ("function-size", KERNEL, "def f():\n" + "    g()\n" * 79),
    ("kernel-imports", KERNEL, "from typing import NamedTuple\nimport numpy as np\nfrom numba import njit"),
    ("kernel-imports", KERNEL, "from nfa.kernels.other import step"),
    ("kernel-flags", KERNEL, "from numba import njit\n@njit(cache=True, fastmath={'contract'})\ndef f(): ..."),
    (
        "cached-callees",
        KERNEL,
        "import numpy as np\nfrom numba import njit\n@njit(cache=True)\ndef f():\n    np.sum(g())",
    ),
    (
        "cached-callees",
        KERNEL,
        "from numba import njit\nfrom nfa.kernels.other import g\n@njit(cache=True)\ndef f():\n    g()",
    ),
    ("broad-except", MODULE, "try:\n    f()\nexcept (OSError, ValueError):\n    g()"),
    (
        "broad-except",
        MODULE,
        "try:\n    f()\n# house: allow broad-except: the worker's outermost loop\nexcept Exception:\n    g()",
    ),
    ("todo", MODULE, "x = 1  # TO" + "DO later, #12"),
    ("module-state", MODULE, "_NAMES = {'a': 1}\n__all__ = ['f']\ndef f():\n    cache = {}\n    cache['a'] = 1"),
    ("import-io", MODULE, "from pathlib import Path\ndef f():\n    return Path('g').read_text()"),
    ("environment", "service/settings.py", "import os\nx = os.environ['A']"),
    ("environment", "pipeline/planted.py", "import os\ndef f():\n    os.environ['A'] = 'b'"),
    ("environment", "tests/nfa/conftest.py", "import os\nx = os.environ['A']"),
    ("wall-clock", "service/planted.py", "import time\ndef f():\n    return time.time()"),
    ("wall-clock", "streams/clock.py", "import time\ndef f():\n    return time.time_ns()"),
    ("inner-imports", "constraints/planted.py", "from nfa import Query\nfrom constraints.model import Clause"),
    ("named-modules", "service/planted.py", "import nfa\nwords = ['python', '-m', 'api.__main__']\nx = f'nfa.{words}'"),
    ("named-modules", "forestall/planted.py", "import forestall.frames\nx = f'api: {forestall}'"),
    ("inner-imports", "literature/spilling/planted.py", "from joins.kernels.tables import NIL"),
    ("kernel-imports", "literature/kernels/planted.py", "from joins.kernels.tables import NIL"),
    ("module-state", "literature/tests/test_planted.py", "cache = {}"),
    ("inner-imports", TEST, "from nfa.language.parsing import parse"),
    ("package-front", "nfa/__init__.py", '"""Purpose."""\nfrom nfa.automata.query import Query\n__all__ = ["Query"]'),
    ("package-front", "nfa/__init__.py", LAZY_FRONT),
    ("package-front", "nfa/__init__.pyi", '"""Purpose."""\nfrom .automata import Query\n__all__ = ["Query"]'),
    ("test-asserts", TEST, "import pytest\ndef test_it():\n    with pytest.raises(ValueError):\n        f()"),
    ("test-asserts", TEST, "def agree():\n    assert f()\n\ndef test_it():\n    agree()"),
    ("skipped-tests", TEST, "import pytest\n@pytest.mark.xfail(reason='issue 12')\ndef test_it():\n    assert f()"),
    ("plain-words", MODULE, '"""At most so many of them, which are told apart."""\nwhoever = "whoever"'),
    ("plain-words", "api/planted.py", '"""There are so many that nothing else."""'),
    ("plain-words", "nfa/kernels/planted.py", '"""For whoever reads it."""'),
    ("plain-words", TEST, '"""For whoever reads it."""'),
    ("patient-tests", TEST, "import httpx\nhttpx.get(url, timeout=PATIENCE_S)"),
    ("plain-docstrings", MODULE, '"""The matches of a trace; ``told`` of those it has.\n\nIt is what that one has."""'),
    ("noun-names", MODULE, "store.put(record)\nis_found = report.found"),
    ("noun-names", TEST, "found = 1"),
    ("noun-names", MODULE, "class Finding:\n    found: str"),
]


@pytest.mark.parametrize("rule", RULES)
def test_tree_keeps(rule):
    found = [str(violation) for source in SOURCES for violation in check(source, rule)]
    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize(("rule", "path", "text"), BREAKS)
def test_rule_bites(rule, path, text):
    assert check(Source(path, text), rule)


@pytest.mark.parametrize(("rule", "path", "text"), KEEPS)
def test_rule_lets_pass(rule, path, text):
    assert check(Source(path, text), rule) == []


def test_every_rule_is_shown_to_bite():
    assert {rule for rule, _, _ in BREAKS} == set(RULES)


def test_skip_comments_of_the_tree_name_a_rule_and_a_reason_and_are_needed():
    shipped = [source for source in SOURCES if source.package or "benchmarks/" in source.path]
    found = [str(violation) for source in shipped for violation in misused_allowances(source)]
    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize(
    "comment",
    ["# house: allow broad-except", "# house: allow broad-except: because", "# house: allow nonsense: one two three"],
)
def test_skip_comment_without_reason_or_rule_is_refused(comment):
    source = Source(MODULE, f"try:\n    f()\nexcept Exception:  {comment}\n    g()")
    assert check(source, "broad-except")
    assert list(misused_allowances(source))


def test_skip_comment_without_effect_is_refused():
    assert list(misused_allowances(Source(MODULE, "x = 1  # house: allow broad-except: the outermost loop here")))
