from pathlib import Path

from evopolicygym import Program


def baseline_program() -> Program:
    return Program.from_directory(Path(__file__).parent / "baseline")
