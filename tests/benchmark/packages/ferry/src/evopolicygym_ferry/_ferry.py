from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from enum import IntEnum
from importlib.metadata import version
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, Literal

from evopolicygym import artifacts, errors
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
    Transition,
)
from evopolicygym.policy import POLICY_ABI_VERSION, PolicyValue, TensorValue
from evopolicygym.results import PolicyFailureCode

RIVERS: Final = MappingProxyType(json.loads(files(__package__).joinpath("data/rivers.json").read_text("utf-8")))
SPLITS: Final = ("train", "validation", "test")


class Bank(IntEnum):
    NEAR = 0
    FAR = 1


class Ferry(Environment):
    def __init__(self, river: Mapping[str, Any], fog: float, episode: EpisodeSpec) -> None:
        self._river, self._fog = river, fog
        self._random = random.Random(episode.environment_seed)
        self._drift = 0.0
        self._rowed = 0
        self._turn = 0

    def _seen(self) -> PolicyValue:
        bank = Bank.FAR if self._rowed >= self._river["width"] else Bank.NEAR
        foggy = self._random.random() < self._fog
        return {
            "turn": self._turn,
            "bank": int(bank),
            "drift": None if foggy else self._drift,
            "chart": TensorValue("float32", (1, 2), b"\0\0\0\0\0\0\x80?"),
            "log": b"\x00\xff",
            "pair": ("a", {"z": 1, "b": [True, 2**63]}),
        }

    def reset(self) -> PolicyValue:
        return self._seen()

    def step(self, action: PolicyValue) -> Step | InvalidAction:
        if type(action) is not dict or set(action) != {"row", "steer"}:
            return InvalidAction("an Action is {row, steer}")
        if type(action["row"]) is not int or action["row"] not in (0, 1):
            raise InvalidAction("row is 0 or 1")
        if type(action["steer"]) is not float or not -1.0 <= action["steer"] <= 1.0:
            return InvalidAction(reason="steer is a float of -1 to 1")
        self._turn += 1
        self._rowed += action["row"]
        self._drift += self._river["current"] - action["steer"]
        arrived = self._rowed >= self._river["width"]
        return Step(
            observation=self._seen(),
            reward=10.0 - abs(self._drift) if arrived else -1,
            terminated=arrived,
            truncated=not arrived and self._turn >= 12,
            metrics={"turn": self._turn, "drift": self._drift},
        )


class FerryBenchmark(Benchmark):
    def __init__(self, name: str, fog: float) -> None:
        if type(fog) is not float or not 0.0 <= fog <= 1.0:
            raise ValueError("fog is a float of 0 to 1")
        if name not in RIVERS:
            raise errors.BenchmarkConfigurationError(f"no river {name!r}")
        self._river, self._fog = RIVERS[name], fog
        self.spec = BenchmarkSpec(
            id="evopolicygym-ferry/crossing",
            description="Row to the far bank and drift little.",
            observation_space={"type": "object"},
            action_space={
                "type": "object",
                "fields": {
                    "row": {"type": "discrete", "values": [0, 1]},
                    "steer": {"type": "float", "minimum": -1.0, "maximum": 1.0},
                },
            },
            metadata={"package": version("evopolicygym-ferry"), "host": version("evopolicygym"), "abi": POLICY_ABI_VERSION},
            environment_parameters={"river": name, "fog": fog, **self._river},
            max_episode_steps=12,
            primary_metric="mean_return",
            score_direction="maximize",
        )

    def episodes(self, split: Literal["train", "validation", "test"], seed: int, count: int) -> Sequence[EpisodeSpec]:
        if split not in SPLITS:
            raise ValueError(f"split must be one of {SPLITS}")
        return tuple(EpisodeSpec(environment_seed=(seed * 1000 + index) % 2**64, scenario=split) for index in range(count))

    def make_environment(self, episode: EpisodeSpec) -> Ferry:
        return Ferry(self._river, self._fog, episode)

    def feedback(self, records: Sequence[EpisodeRecord]) -> Feedback:
        if not isinstance(records, tuple) or not all(isinstance(record, EpisodeRecord) for record in records):
            raise TypeError("records must be a tuple of EpisodeRecords")
        returns = [self._return(record) for record in records]
        trace = "".join(json.dumps(self._told(record)) + "\n" for record in records)
        return Feedback(
            score=sum(returns) / len(returns),
            content=MappingProxyType({"returns": tuple(returns), "failures": sum(bool(r.policy_failure) for r in records)}),
            artifacts=(
                Artifact("trace.jsonl", "application/x-ndjson", trace.encode(), retention="bulk"),
                artifacts.Artifact(name="summary.txt", media_type="text/plain; charset=utf-8", content=b"crossed\n"),
            ),
        )

    @staticmethod
    def _return(record: EpisodeRecord) -> float:
        if record.policy_failure is None:
            return sum(transition.step.reward for transition in record.transitions)
        assert record.policy_failure in set(PolicyFailureCode)
        return -12.0

    @staticmethod
    def _told(record: EpisodeRecord) -> dict[str, object]:
        def turn(transition: Transition) -> dict[str, object]:
            step = transition.step
            return {"action": transition.action, "seen": repr(step.observation), "metrics": step.metrics}

        return {
            "seed": record.spec.environment_seed,
            "first": repr(record.initial_observation),
            "turns": [turn(transition) for transition in record.transitions],
            "failure": record.policy_failure,
        }


def make_benchmark(river: Literal["narrow", "wide"] = "narrow", fog: float = 0.0, note: str | None = None) -> FerryBenchmark:
    if note is not None and not isinstance(note, str):
        raise TypeError("note is text")
    return FerryBenchmark(river, fog)
