"""Where a package may keep its baseline Program (docs/benchmarks.md lists the same places).

Looked at in this order: the Benchmark object; its fixture; the module that was named, its SUBMODULES, and the package
around it, for one of NAMES, then for any name with "baseline" in it, then for a function that says it returns a Program;
then directories beside those modules that hold a policy.py, the only such directory anywhere below them, and last a
submodule that is a Policy itself.
"""

import importlib
import inspect
import os
import types
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
SUBMODULES = ("baseline", "baselines", "baseline_program", "_baseline", "program", "programs", "baseline_policy", "policy")
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


class NoBaseline(LookupError):
    """None is found; says what to do."""


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


def _telling_names(owner):
    """Names that tell of a baseline without being one of NAMES. A function is only called when it seems to give one."""
    for name in dir(owner):
        value = getattr(owner, name, None) if "baseline" in name.lower() and not name.startswith("_") else None
        if value is None or isinstance(value, (type, types.ModuleType)):
            continue
        gives = name.startswith(("make_", "load_", "get_", "build_", "create_")) or name.endswith(
            ("baseline", "_program", "_path", "_directory", "_dir")
        )
        if gives or not callable(value):
            yield name


def _annotated_names(owner):
    """Of a module: functions that can be called without arguments and say that they return a Program."""
    for name, value in vars(owner).items() if isinstance(owner, types.ModuleType) else ():
        if not isinstance(value, types.FunctionType) or name.startswith("_"):
            continue
        told = value.__annotations__.get("return")
        if told is Program or str(told).rpartition(".")[2] == "Program":
            if all(entry.default is not entry.empty for entry in inspect.signature(value).parameters.values()):
                yield name


def _policy_itself(owner):
    """The Program of a submodule that defines make_policy."""
    file = getattr(owner, "__file__", None)
    if getattr(getattr(owner, "make_policy", None), "__module__", None) != owner.__name__ or not file:
        return None
    with open(file, "rb") as source:
        return Program({"policy.py": source.read()})


def _directories(below):
    """The directories below another, at most four levels deep, that hold a policy.py."""
    found = []
    for directory, inner, files in os.walk(below):
        level = os.path.relpath(directory, below).count(os.sep)
        inner[:] = [] if level >= 3 else sorted(set(inner) - {"__pycache__", "tests"})
        if "policy.py" in files and directory != below:
            found.append(directory)
    return found


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
            for tail in ("", *SUBMODULES):
                try:
                    yield importlib.import_module(start + "." * bool(tail) + tail)
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
    for names in (_telling_names, _annotated_names):
        for owner in owners:
            found = _named(owner, names(owner))
            if found is not None:
                return found
    modules = owners[1:]
    found = _in_directories(name, modules)
    for module in modules:
        found = found or _policy_itself(module)
    if found is None:
        raise NoBaseline("the package of %s has no baseline where one is looked for: docs/benchmarks.md lists the "
                         "places; start with any directory that holds a policy.py" % name)
    return found


def _in_directories(name, modules):
    places = [os.path.dirname(module.__file__) for module in modules if getattr(module, "__file__", None)]
    for place in places:
        for directory in DIRECTORIES:
            found = _program(os.path.join(place, directory))
            if found is not None:
                return found
    several = []
    for module in modules:
        if hasattr(module, "__path__") and getattr(module, "__file__", None):
            found = _directories(os.path.dirname(module.__file__))
            if len(found) == 1:
                return _program(found[0])
            several = several or found
    if several:
        raise NoBaseline("the package of %s has several Programs and none that is called its baseline; copy one of "
                         "them: %s" % (name, ", ".join(sorted(several))))
    return None
