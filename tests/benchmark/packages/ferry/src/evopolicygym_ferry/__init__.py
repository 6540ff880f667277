"""Row a ferry over a river: an installed distribution with data files, as others lay theirs out."""

import evopolicygym.authoring as authoring

from ._ferry import Ferry, FerryBenchmark, make_benchmark
from ._fixture import baseline, fixture

__all__ = ["Ferry", "FerryBenchmark", "baseline", "fixture", "make_benchmark"]

assert issubclass(FerryBenchmark, authoring.Benchmark)
