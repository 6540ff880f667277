"""EvoPolicyGym, as a Benchmark package sees it.

``evopolicygym.authoring`` is what a Benchmark is written with; ``evopolicygym.policy`` is the Policy's own module, the
very file that Policy processes get. This package's path goes on to the guest's package, so there is one of each. What
neither has is looked for in an installed ``evopolicygym``, last.
"""

import os

_HERE = os.path.dirname(os.path.abspath(__file__))
for _guest in (
    os.path.join(_HERE, "..", "..", "..", "guest", "python", "evopolicygym"),  # in the source tree
    os.path.join(_HERE, "..", "..", "guest", "evopolicygym"),  # installed
):
    if os.path.isfile(os.path.join(_guest, "policy.py")):
        __path__.append(os.path.abspath(_guest))
        break
__path__ = __import__("pkgutil").extend_path(__path__, __name__)

__version__ = "0.3.0"  # of the interface that packages are written for
__all__ = ["Program"]

_PLACES = ("authoring", "program", "artifacts", "results", "errors", "policy")


def _find(name, asked):
    """A public name of any module here, wherever a package looks for it."""
    import importlib

    if not name.startswith("_"):
        if name in _PLACES and asked == __name__:
            return importlib.import_module("evopolicygym." + name)
        for place in _PLACES:
            module = importlib.import_module("evopolicygym." + place)
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError("module %r has no attribute %r; %s" % (asked, name, offered(asked)))


def offered(module):
    """What a module here has for packages, in words."""
    import importlib

    if module.rpartition(".")[2] in _PLACES:
        return "%s has %s" % (module, ", ".join(sorted(importlib.import_module(module).__all__)))
    return "there are evopolicygym.%s and evopolicygym.Program" % ", .".join(_PLACES)


def __dir__():
    return sorted([*globals(), *__all__, *_PLACES])


def __getattr__(name):
    """``evopolicygym.Program`` and other names of the modules below, loaded when they are first asked for."""
    return _find(name, __name__)
