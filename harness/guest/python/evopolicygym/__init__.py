"""EvoPolicyGym, as a Policy Program sees it: import names from ``evopolicygym.policy``."""


def __getattr__(name):
    """The same names from here."""
    if not name.startswith("_") and name != "policy":
        from . import policy

        if name in policy.__all__:
            return getattr(policy, name)
    raise AttributeError("module 'evopolicygym' has no attribute %r" % name)
