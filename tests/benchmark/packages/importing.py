"""Factories that import what can't be had, and one that gives no Benchmark."""


def name():
    import evopolicygym.authoring

    assert not hasattr(evopolicygym.authoring, "Spec")

    from evopolicygym.authoring import Spec


def module():
    from evopolicygym.spaces import Box


def library():
    import missing_library


def a_class():
    from evopolicygym.authoring import Benchmark

    return Benchmark
