"""Episodes that never end by themselves before a million steps: long:make?deaf=..."""

import signal
import threading

from evopolicygym.authoring import Benchmark, BenchmarkSpec, Environment, EpisodeSpec, Feedback, Step


class Endless(Environment):
    def reset(self):
        return [0.0] * 8

    def step(self, action):
        return Step([0.5] * 8, 1.0, metrics={"text": "x" * 40})


class Long(Benchmark):
    spec = BenchmarkSpec(
        "long", "Endless.", {"type": "list"}, {"type": "int"}, max_episode_steps=1000000, primary_metric="steps"
    )

    def episodes(self, split, seed, count):
        return [EpisodeSpec(index) for index in range(count)]

    def make_environment(self, episode):
        return Endless()

    def feedback(self, records):
        whole = sum(transition.step.reward for record in records for transition in record.transitions)
        last = records[-1].transitions[-1].step
        if last.metrics != {"text": "x" * 40} or last.observation != [0.5] * 8 or len(records[:1]) != 1:
            raise AssertionError("another record")
        again = sum(len(record.transitions) for record in reversed(records))
        return Feedback(whole if whole == again else -1.0)


def make(deaf: bool = False):
    if deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        threading.Thread(target=threading.Event().wait).start()  # the interpreter waits for it at its end
    return Long()
