"""Errors that packages name.

A name that ends in ``Error`` and is not here is made on demand, as a kind of ``EvoPolicyGymError``: a package may guard
against an error that this Host never raises.
"""

__all__ = [
    "EvoPolicyGymError",
    "BenchmarkError",
    "ProgramError",
    "ProgramSourceError",
    "ProgramLimitError",
    "ProgramChangedError",
    "InvalidActionError",
]


class EvoPolicyGymError(Exception):
    """The base of all errors of EvoPolicyGym."""


class BenchmarkError(EvoPolicyGymError):
    """A Benchmark broke its contract."""


class InvalidActionError(EvoPolicyGymError, ValueError):
    """An Environment refused an Action (the base of authoring.InvalidAction)."""


class ProgramError(EvoPolicyGymError, ValueError):
    """A directory is no Program."""


class ProgramSourceError(ProgramError):
    """Missing or unsupported content."""


class ProgramLimitError(ProgramError):
    """Too many files, or too large."""


class ProgramChangedError(ProgramError):
    """The directory changed while it was read."""


def __getattr__(name):
    if not name.endswith("Error") or name.startswith("_"):
        raise AttributeError("module 'evopolicygym.errors' has no attribute %r" % name)
    made = type(name, (EvoPolicyGymError,), {"__module__": __name__})
    globals()[name] = made
    return made
