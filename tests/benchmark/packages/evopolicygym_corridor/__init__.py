"""A package as others write them: walk a corridor to its exit, on ice."""

from .benchmark import CorridorBenchmark, make_benchmark
from .program import baseline_program

__all__ = ["CorridorBenchmark", "baseline_program", "make_benchmark"]
