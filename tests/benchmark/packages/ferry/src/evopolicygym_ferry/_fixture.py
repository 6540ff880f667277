from importlib.resources import as_file, files

import evopolicygym
from evopolicygym.authoring import BenchmarkFixture, ConformanceIssue, ConformanceReport, check_benchmark

from ._ferry import make_benchmark


def baseline() -> evopolicygym.Program:
    with as_file(files(__package__).joinpath("data", "baseline")) as directory:
        return evopolicygym.Program.from_directory(directory)


def fixture() -> BenchmarkFixture:
    return BenchmarkFixture(
        benchmark=make_benchmark(),
        actions=[[{"row": 1, "steer": 0.0}] * 9, [{"row": 0, "steer": -1.0}, {"row": 7, "steer": 0.0}]],
        split="train",
        seed=3,
    )


def self_check() -> ConformanceReport:
    report = check_benchmark(fixture())
    assert all(isinstance(issue, ConformanceIssue) for issue in report.issues)
    return report
