"""CartPole in plain Python, as a package has it; `python pole.py` tells the microseconds of a step and of an act."""

import math
import random
import sys

from evopolicygym.authoring import Benchmark, BenchmarkSpec, Environment, EpisodeSpec, Feedback, InvalidAction, Step


class Pole(Environment):
    def __init__(self, seed, work=0):
        self._work = range(work)
        self._random = random.Random(seed)
        self._steps = 0

    def reset(self):
        self._state = [self._random.uniform(-0.05, 0.05) for _ in range(4)]
        return list(self._state)

    def step(self, action):
        if type(action) is not int or action not in (0, 1):
            return InvalidAction("the Action must be 0 or 1")
        for _ in self._work:  # what wrappers and checks cost elsewhere
            pass
        x, x_dot, theta, theta_dot = self._state
        force = 10.0 if action == 1 else -10.0
        cosine, sine = math.cos(theta), math.sin(theta)
        push = (force + 0.05 * theta_dot * theta_dot * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1))
        slide = push - 0.05 * turn * cosine / 1.1
        self._state = [x + 0.02 * x_dot, x_dot + 0.02 * slide, theta + 0.02 * theta_dot, theta_dot + 0.02 * turn]
        self._steps += 1
        if self._steps % 10 == 0:
            self._state = [0.01, 0.0, 0.01, 0.0]
        return Step(
            observation=list(self._state),
            reward=1.0,
            terminated=False,
            truncated=self._steps >= 1000000,
            metrics={"position": self._state[0]},
        )


class PoleBenchmark(Benchmark):
    spec = BenchmarkSpec(
        id="pole",
        description="Balance.",
        observation_space={"type": "list"},
        action_space={"type": "discrete", "values": [0, 1]},
        max_episode_steps=1000000,
        primary_metric="steps",
    )

    def episodes(self, split, seed, count):
        return [EpisodeSpec(seed + index) for index in range(count)]

    def make_environment(self, episode):
        return Pole(episode.environment_seed, self._work)

    def __init__(self, work):
        self._work = work

    def feedback(self, records):
        return Feedback(float(sum(len(record.transitions) for record in records)))


def make(work: int = 0):
    return PoleBenchmark(work)


def best(call, argument, rounds=200, calls=200):
    from time import perf_counter

    least = math.inf
    for _ in range(rounds):
        began = perf_counter()
        for _ in range(calls):
            call(argument)
        least = min(least, perf_counter() - began)
    return least / calls * 1e6


if __name__ == "__main__":
    environment = Pole(1, int(sys.argv[1]))
    observation = environment.reset()

    class Policy:
        def act(self, observation):
            return 1

    print(best(environment.step, 1), best(Policy().act, observation))
