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
    "InvalidAction",
    "InvalidActionError",
]


class EvoPolicyGymError(Exception):
    """The base of all errors of EvoPolicyGym."""


class BenchmarkError(EvoPolicyGymError):
    """A Benchmark broke its contract."""


class InvalidAction(EvoPolicyGymError, ValueError):
    """An Action that the Environment refuses: `step` may raise it or return it."""

    def __init__(self, reason="", *details, **named):
        super().__init__(reason or next((text for text in named.values() if isinstance(text, str)), ""), *details)

    @property
    def reason(self):
        return str(self.args[0]) if self.args else ""

    message = reason

    def __eq__(self, other):
        return self.args == other.args if type(other) is type(self) else NotImplemented

    def __hash__(self):
        return hash((type(self), self.reason))


InvalidActionError = InvalidAction  # another name for it


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
        from . import _find

        return _find(name, __name__)
    made = type(name, (EvoPolicyGymError,), {"__module__": __name__})
    globals()[name] = made
    return made
