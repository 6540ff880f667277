from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from typing import Sequence

from evopolicygym.authoring import (
    Artifact,
    Benchmark,
    BenchmarkSpec,
    Environment,
    EpisodeRecord,
    EpisodeSpec,
    Feedback,
    InvalidAction,
    Step,
)
from evopolicygym.policy import PolicyValue, TensorValue


@dataclass(frozen=True)
class CorridorConfig:
    length: int = 5
    slip: float = 0.25
    label: str = "ice"

    def __post_init__(self) -> None:
        if type(self.length) is not int or self.length < 2:
            raise ValueError("length must be an int of at least 2")


def _seed(split: str, seed: int, index: int) -> int:
    digest = hashlib.sha256()
    digest.update(b"evopolicygym-corridor/episode-seed/v1\0")
    digest.update(split.encode() + b"\0" + seed.to_bytes(8, "big") + index.to_bytes(8, "big"))
    return int.from_bytes(digest.digest()[:8], "big")


class CorridorEnvironment(Environment):
    def __init__(self, config: CorridorConfig, episode: EpisodeSpec) -> None:
        self._config = config
        self._random = random.Random(episode.environment_seed)
        self._position = episode.scenario["start"]
        self._steps = 0

    def _observe(self) -> PolicyValue:
        grid = bytes(index == self._position for index in range(self._config.length))
        return {
            "position": [float(self._position), 0.5],  # not in the order of the keys
            "grid": TensorValue("bool", (self._config.length,), grid),
            "more": [{"b": 1, "a": 2}, {}, {"a": (), "b": [{"z": 0, "y": None}]}],
        }

    def reset(self) -> PolicyValue:
        return self._observe()

    def step(self, action: PolicyValue) -> Step | InvalidAction:
        if type(action) is not int or action not in (0, 1):
            return InvalidAction("the Action must be 0 or 1")
        slipped = self._random.random() < self._config.slip
        self._position = max(0, self._position + (1 if action == 1 else -1) * (-1 if slipped else 1))
        self._steps += 1
        done = self._position >= self._config.length - 1
        return Step(
            observation=self._observe() if not done else None,
            reward=1.0 if done else -0.1,
            terminated=done,
            truncated=not done and self._steps >= 40,
            metrics={"slipped": slipped, "position": self._position, "nested": ({"d": 1, "c": 2},)},
        )

    def close(self) -> None:
        self._position = -1


class CorridorBenchmark(Benchmark):
    def __init__(self, config: CorridorConfig) -> None:
        self._config = config

    @property
    def spec(self) -> BenchmarkSpec:
        return BenchmarkSpec(
            id="corridor",
            description="Walk to the right end of an icy corridor.",
            observation_space={"type": "object", "fields": {"grid": {"type": "tensor", "dtype": "bool"}}},
            action_space={"type": "discrete", "values": [0, 1]},
            metadata={"label": self._config.label},
            environment_parameters={"length": self._config.length, "slip": self._config.slip},
            max_episode_steps=40,
            primary_metric="mean_return",
            score_direction="maximize",
        )

    def episodes(self, split: str, *, seed: int, count: int) -> Sequence[EpisodeSpec]:
        if split not in ("train", "validation", "test"):
            raise ValueError(f"unknown split {split!r}")
        return tuple(
            EpisodeSpec(environment_seed=_seed(split, seed, index), scenario={"start": index % 2, "pair": (1, "a")})  # nor here
            for index in range(count)
        )

    def make_environment(self, episode: EpisodeSpec) -> Environment:
        assert episode.scenario["pair"] == (1, "a")
        return CorridorEnvironment(self._config, episode)

    def feedback(self, records: Sequence[EpisodeRecord]) -> Feedback:
        returns = []
        lines = []
        for index, record in enumerate(records):
            first = {key: str(value) for key, value in record.initial_observation.items()}
            lines.append(json.dumps({"scenario": record.spec.scenario, "first": first}))
            total = sum(transition.step.reward for transition in record.transitions)
            failed = record.policy_failure is not None
            returns.append(-4.0 if failed else total)
            for turn, transition in enumerate(record.transitions):
                step = transition.step
                lines.append(
                    json.dumps(
                        {"episode": index, "step": turn, "action": transition.action, "reward": step.reward,
                         "metrics": step.metrics, "end": step.terminated or step.truncated,
                         "seen": str(step.observation)}
                    )
                )
        assert records[0].spec.scenario["start"] == 0 and records[-1] == tuple(records)[len(records) - 1]
        return Feedback(
            score=sum(returns) / len(returns),
            content={
                "returns": returns,
                "failures": {str(code): 1 for code in sorted({r.policy_failure for r in records if r.policy_failure})},
            },
            artifacts=[
                Artifact(name="trace/steps.jsonl", media_type="application/x-ndjson",
                         content="".join(line + "\n" for line in lines).encode(), retention="bulk"),
            ],
        )


def make_benchmark(length: int = 5, slip: float = 0.25, label: str = "ice") -> CorridorBenchmark:
    return CorridorBenchmark(CorridorConfig(length=length, slip=slip, label=label))
