import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.warmup import exercise, warm_up

# What tests and matchers without a guard call, and the pipeline does not.
NEEDLESS = {"nfa.shared list_pairs", "nfa.shared sweep", "nfa.traces remove_keys"}
UNCALLED = """
import inspect, pkgutil, re
from importlib import import_module
from numba.core.dispatcher import Dispatcher
import nfa
from pipeline.warmup import exercise

exercise()
for found in pkgutil.iter_modules(nfa.__path__, "nfa."):
    if found.ispkg or found.name.endswith("testing"):
        continue
    module = import_module(found.name)
    source = inspect.getsource(module)
    for name, value in vars(module).items():
        within = vars(value) if inspect.ismodule(value) and ".kernels." in value.__name__ else {}
        called = [value] + [within.get(part) for part in re.findall(rf"\\b{name}\\.(\\w+)", source)]
        for kernel in called:
            if isinstance(kernel, Dispatcher) and not kernel.signatures:
                print(found.name, kernel.py_func.__name__)
"""


def test_both_engines_find_their_matches_under_both_guards():
    assert exercise() == 18


def test_every_kernel_that_the_matcher_calls_is_called():
    done = subprocess.run([sys.executable, "-c", UNCALLED], capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()) <= NEEDLESS


@pytest.mark.spark
def test_kernels_are_compiled_into_the_shared_cache(spark):
    warm_up(spark)
    cache = Path(spark.conf.get("spark.executorEnv.NUMBA_CACHE_DIR"))
    assert cache == Path(os.environ["NUMBA_CACHE_DIR"])
    assert list(cache.glob("**/traces.*.nbc"))
    assert list(cache.glob("**/shared.*.nbc"))
    assert list(cache.glob("**/runs.*.nbc"))
