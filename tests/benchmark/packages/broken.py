"""A Benchmark that is right but for what it is told to do wrong: broken:make?at=..."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

from evopolicygym import errors
from evopolicygym.authoring import BenchmarkSpec, EpisodeSpec, Feedback, InvalidAction, Step


def deep(levels):
    value = None
    for _ in range(levels):
        value = [value]
    return value


def hang():
    while True:
        time.sleep(1000)


class Broken:
    def __init__(self, at):
        self.at = at
        self.child = None

    def trip(self, call):
        what, _, where = self.at.partition("-")
        if where != call:
            return
        if what == "raise":
            raise RuntimeError("told to raise in " + call)
        if what == "python":  # an interpreter of the package's own
            code = "import evopolicygym, broken; from importlib import metadata; metadata.version('evopolicygym')"
            subprocess.run([sys.executable, "-c", code], check=True)
        if what == "pipe":  # of the package's own
            reading, writing = os.pipe()
            os.close(reading)
            os.write(writing, b"x")
        if what == "exit":
            sys.exit(3)
        if what == "die":
            os._exit(5)
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "hang":
            hang()
        if what == "print":
            for stream in (sys.stdout, sys.stderr):
                print("\0\0\0\x05x" * 1000, file=stream, flush=True)
            os.write(1, b"\0\0\0\5x0000")
        if what == "flood":
            for number in range(100000):
                print("\x1b[31m line %d " % number + "x" * 1000, file=sys.stderr)
        if what == "spawn":
            for _ in range(2):
                subprocess.Popen(["sleep", "31570"])
            subprocess.run(["sh", "-c", "setsid sleep 31571 >/dev/null 2>&1 &"], check=True)
        if what == "hog":  # half a gigabyte, touched
            self.hoard = bytearray(b"x") * (512 << 20)
        if what == "orphan":  # a child that holds everything open while its parent dies
            if os.fork() == 0:
                hang()
            os._exit(6)
        if what == "junk":
            os.write(4, b"\xff\xff\xff\xffjunk")
            hang()
        if what == "speaks":
            os.write(4, b"\0\0\0\x06x\0\0\0\0N")
        if what == "mute":
            os.close(4)
            hang()

    @property
    def spec(self):
        self.trip("spec")
        return BenchmarkSpec(
            "broken", "Right but for one thing.", {"type": "float"}, {"type": "int", "minimum": 0, "maximum": 3},
            max_episode_steps=3, primary_metric="score",
        )

    def episodes(self, split, seed, count):
        self.trip("episodes")
        count += {"few-episodes": -1, "many-episodes": 1}.get(self.at, 0)
        if self.at == "wrong-episodes":
            return [seed] * count
        scenario = "s" * (30 << 20) if self.at == "large-scenario" else None
        return [EpisodeSpec(seed + index, scenario) for index in range(count)]

    def make_environment(self, episode):
        self.trip("make")
        if self.at == "child" and self.child is None:
            self.child = subprocess.Popen(["sh", "-c", "while :; do sleep 31570; done"])
        return None if self.at == "wrong-make" else Environment(self)

    def feedback(self, records):
        self.trip("feedback")
        if self.at == "slow-feedback":
            for record in records:
                time.sleep(2)
        if self.child is not None and self.child.poll() is not None:
            raise RuntimeError("the Benchmark's own child was ended")
        if self.at == "wrong-feedback":
            return 1.0
        if self.at == "nan-feedback":
            return Feedback(float("nan"))
        return Feedback(float(sum(len(record.transitions) for record in records)), {"failures": [
            record.policy_failure for record in records]})


class Environment:
    def __init__(self, benchmark):
        self.benchmark = benchmark
        self.at = benchmark.at
        self.steps = 0

    def bad(self, call):
        return {
            "nan-" + call: float("nan"),
            "type-" + call: SimpleNamespace(),
            "set-" + call: {1, 2},
            "deep-" + call: deep(40),
            "large-" + call: bytes(5 * 1024 * 1024),
            "nodes-" + call: [0] * 70000,
            "key-" + call: {1: 2},
            "int-" + call: 1 << 64,
        }.get(self.at, 0.5)

    def reset(self):
        self.benchmark.trip("reset")
        return self.bad("reset")

    def step(self, action):
        self.steps += 1
        self.benchmark.trip("step")
        if action == 2:
            raise InvalidAction("2 is refused")
        if action == 3:
            return InvalidAction(reason="3 is refused")
        if action == 1:
            raise errors.InvalidActionError("1 is refused")
        if self.at == "wrong-step":
            return 0.5, 1.0, True, False, {}
        reward = {"nanreward-step": float("nan"), "textreward-step": "1"}.get(self.at, 1.0)
        if self.at == "huge-step":
            reward = 1e308
        return Step(self.bad("step"), reward, self.steps == 3 and self.at != "never-ends", False, {"steps": self.steps})

    def close(self):
        self.benchmark.trip("close")


def make(at="nothing"):
    if at == "raise-factory":
        raise RuntimeError("told to raise in the factory")
    return Broken(at)
