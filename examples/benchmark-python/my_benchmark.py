"""A Benchmark in Python: find a hidden number by being told "higher" or "lower".

    evopolicygym benchmark check 'python:my_benchmark:make_benchmark?size=50'      (run here, or with PYTHONPATH)
    evopolicygym benchmark baseline python:my_benchmark:make_benchmark --to program
    evopolicygym evaluate program --benchmark 'python:my_benchmark:make_benchmark?size=50'
"""

import hashlib
import json
import random

from evopolicygym.authoring import (
    Artifact,
    Benchmark,
    BenchmarkSpec,
    Environment,
    EpisodeSpec,
    Feedback,
    InvalidAction,
    Step,
)

GUESSES = 20


class Search(Environment):
    """One Episode. All chance comes from the Environment's seed."""

    def __init__(self, size, episode):
        self.size = size
        self.secret = random.Random(episode.environment_seed).randrange(size)
        self.guesses = 0

    def reset(self):
        return {"answer": None, "guesses": 0}

    def step(self, action):
        if type(action) is not int or not 0 <= action < self.size:
            raise InvalidAction("a guess is an int from 0 to %d" % (self.size - 1))
        self.guesses += 1
        found = action == self.secret
        return Step(
            observation={
                "answer": "found" if found else "higher" if action < self.secret else "lower",
                "guesses": self.guesses,
            },
            reward=1.0 / self.guesses if found else 0.0,
            terminated=found,
            truncated=not found and self.guesses == GUESSES,
            metrics={"distance": abs(action - self.secret)},  # the Benchmark's own: no Policy sees it
        )


class SearchBenchmark(Benchmark):
    def __init__(self, size):
        if size < 1:
            raise ValueError("size must be at least 1")
        self.size = size
        self.spec = BenchmarkSpec(
            id="example/search",
            description="Find a hidden int from 0 to %d. Each guess is answered by higher, lower or found; finding it "
            "with the n-th guess earns 1/n and ends the Episode, which is cut after %d guesses. The score is the mean "
            "return; a failed Episode counts as 0." % (size - 1, GUESSES),
            observation_space={
                "type": "object",
                "fields": {
                    "answer": {"type": "string", "values": [None, "higher", "lower", "found"]},
                    "guesses": {"type": "integer", "minimum": 0, "maximum": GUESSES},
                },
            },
            action_space={"type": "integer", "minimum": 0, "maximum": size - 1},
            metadata={},
            environment_parameters={"size": size},  # what is digested: all that makes this another Benchmark
            max_episode_steps=GUESSES,
            primary_metric="mean_return",
            score_direction="maximize",
        )

    def episodes(self, split, seed, count):
        if split not in ("train", "validation", "test"):
            raise ValueError("there is no split %r" % split)
        digest = lambda index: hashlib.sha256(b"%s %d %d" % (split.encode(), seed, index)).digest()
        return [EpisodeSpec(int.from_bytes(digest(index)[:8], "big")) for index in range(count)]

    def make_environment(self, episode):
        return Search(self.size, episode)

    def feedback(self, records):
        returns, lines = [], []
        for record in records:
            total = sum(turn.step.reward for turn in record.transitions)
            returns.append(0.0 if record.policy_failure else total)
            lines.append(json.dumps([[turn.action, turn.step.metrics["distance"]] for turn in record.transitions]))
        return Feedback(
            score=sum(returns) / len(returns),
            content={"returns": returns, "failures": sum(record.policy_failure is not None for record in records)},
            artifacts=[Artifact("guesses.jsonl", "application/x-ndjson", "\n".join(lines).encode(), retention="bulk")],
        )


def make_benchmark(size: int = 100):
    return SearchBenchmark(size)
