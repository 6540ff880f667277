"""Where a package may keep its baseline Program (docs/benchmarks.md lists the same places).

Looked at in this order: the Benchmark object; its fixture; the module that was named, its `baseline` and `baselines`
submodules, and the package around it, for one of NAMES; then directories beside those modules that hold a policy.py.
"""

import importlib
import os
from collections.abc import Mapping

from .program import Program

NAMES = (
    "baseline",
    "baseline_program",
    "make_baseline",
    "make_baseline_program",
    "load_baseline",
    "get_baseline",
    "create_baseline",
    "BASELINE",
    "BASELINE_PROGRAM",
    "baseline_path",
    "baseline_directory",
    "BASELINE_PATH",
    "BASELINE_DIRECTORY",
    "BASELINE_DIR",
    "starter_program",
    "initial_program",
)
FIXTURES = ("fixture", "benchmark_fixture", "make_fixture", "FIXTURE", "BENCHMARK_FIXTURE")
DIRECTORIES = (
    "baseline",
    "baseline_program",
    "baselines/baseline",
    "baselines/default",
    "baselines",
    "program",
    "programs/baseline",
    "starter",
    "initial",
    "examples/baseline",
)


def _program(value):
    """The Program that a value stands for, or None."""
    if isinstance(value, Program):
        return value
    if isinstance(value, Mapping) and "policy.py" in value:
        return Program({path: data.encode() if isinstance(data, str) else data for path, data in value.items()})
    if isinstance(value, (str, os.PathLike)) and str(value):
        path = os.fspath(value)
        if os.path.isfile(path) and os.path.basename(path) == "policy.py":
            path = os.path.dirname(path)
        if os.path.isfile(os.path.join(path, "policy.py")):
            return Program.from_directory(os.path.realpath(path))
    return None


def _named(owner, names=NAMES):
    for name in names:
        value = getattr(owner, name, None)
        if value is None:
            continue
        if callable(value) and not isinstance(value, (Program, Mapping)):
            try:
                value = value()
            except TypeError:
                continue  # it wants arguments: another kind of thing
        found = _program(value)
        if found is not None:
            return found
    return None


def _fixtures(owner):
    for name in FIXTURES:
        value = getattr(owner, name, None)
        if callable(value):
            try:
                value = value()
            except TypeError:
                continue
        if value is not None:
            yield value


def _modules(name, benchmark):
    """The named module, what defines the Benchmark, and the packages around both, each with its baselines."""
    for start in dict.fromkeys((name, type(benchmark).__module__)):
        while start and start != "builtins":
            for tail in ("", ".baseline", ".baselines", ".baseline_program"):
                try:
                    yield importlib.import_module(start + tail)
                except ImportError:
                    pass
            start = start.rpartition(".")[0]


def find(benchmark, name):
    owners = [benchmark, *_modules(name, benchmark)]
    for owner in owners:
        found = _named(owner)
        if found is not None:
            return found
        for fixture in _fixtures(owner):
            found = _named(fixture, NAMES + ("program",))
            if found is not None:
                return found
    for module in owners[1:]:
        file = getattr(module, "__file__", None)
        for directory in DIRECTORIES if file else ():
            found = _program(os.path.join(os.path.dirname(file), directory))
            if found is not None:
                return found
    raise LookupError("the package of %s has no baseline where one is looked for" % name)
