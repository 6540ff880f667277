"""What a Benchmark is written with.

A Benchmark has a ``spec``, ``episodes(split, seed, count)``, ``make_environment(episode)`` and ``feedback(records)``; an
Environment has ``reset()``, ``step(action)`` and ``close()``. The base classes may be used and need not be. All values
here are immutable and check themselves: TypeError for another type, ValueError for a value out of bounds.
"""

from abc import ABCMeta
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Mapping, Optional, Sequence, Tuple, Union

from . import _values
from ._values import _double, boolean, finite, integer, orders_of, private_bytes, public_bytes, text, trusted_bytes
from .artifacts import MAX_ARTIFACTS, Artifact
from .errors import InvalidAction
from .policy import PolicyValue, TensorValue

__all__ = [
    "Artifact",
    "Benchmark",
    "BenchmarkFixture",
    "BenchmarkSpec",
    "ConformanceIssue",
    "ConformanceReport",
    "Environment",
    "EpisodeRecord",
    "EpisodeSpec",
    "Feedback",
    "InvalidAction",
    "PolicyFailureCode",
    "PolicyValue",
    "ScoreDirection",
    "Step",
    "TensorValue",
    "Transition",
    "check_benchmark",
]


class _Text(str, Enum):
    """A string of a fixed set, that prints as that string."""

    __str__ = str.__str__
    __repr__ = str.__repr__
    __format__ = str.__format__

    @property
    def code(self):
        return self.value


class PolicyFailureCode(_Text):
    """How a Policy failed. Equal to the plain strings."""

    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    INVALID_ACTION = "invalid_action"
    PROTOCOL_ERROR = "protocol_error"


class ScoreDirection(_Text):
    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


def _set(self, **fields):
    self.__dict__.update(fields)


class _Telling:
    """Says what it has where it is asked for something else."""

    __slots__ = ()

    def __getattr__(self, name):
        kind = type(self)
        has = ", ".join(kind.__dataclass_fields__)
        raise AttributeError("%s has no %s; it has %s" % (kind.__name__, name, has))


class _Wired(_Telling):
    """Is encoded where it is checked; the bytes are kept beside the fields. What was made in another way, a subclass with
    an __init__ of its own or a Step out of a record, is checked and encoded when its bytes are asked for."""

    __slots__ = ("_wire",)  # and a __dict__, which each of them has

    def __getattr__(self, name):
        if name != "_wire":
            return super().__getattr__(name)
        wire = self._encoded()
        _keep(self, wire)
        return wire

    def __getstate__(self):
        return self.__dict__


_keep = _Wired._wire.__set__


@dataclass(frozen=True, init=False)
class BenchmarkSpec(_Wired):
    """What a Benchmark tells of itself; public."""

    id: str
    description: str
    observation_space: Any
    action_space: Any
    metadata: Mapping[str, Any]
    environment_parameters: Mapping[str, Any]
    max_episode_steps: int
    primary_metric: str
    score_direction: str

    def __init__(
        self,
        id,
        description,
        observation_space,
        action_space,
        metadata=None,
        environment_parameters=None,
        max_episode_steps=None,
        primary_metric=None,
        score_direction="maximize",
    ):
        direction = getattr(score_direction, "value", score_direction)
        if not isinstance(direction, str):
            raise TypeError("BenchmarkSpec.score_direction must be a str, not %s" % type(direction).__name__)
        if direction not in ("maximize", "minimize"):
            raise ValueError("BenchmarkSpec.score_direction must be 'maximize' or 'minimize', not %r" % direction)
        maps = {}
        for name, value in (("metadata", metadata), ("environment_parameters", environment_parameters)):
            value = {} if value is None else value
            if not isinstance(value, Mapping):
                raise TypeError("BenchmarkSpec.%s must be a mapping, not %s" % (name, type(value).__name__))
            maps[name] = dict(value)
        _set(
            self,
            id=text(id, "BenchmarkSpec.id", one_line=True),
            description=text(description, "BenchmarkSpec.description"),
            observation_space=observation_space,
            action_space=action_space,
            max_episode_steps=integer(max_episode_steps, "BenchmarkSpec.max_episode_steps", 1, _values.U64_MAX),
            primary_metric=text(primary_metric, "BenchmarkSpec.primary_metric", one_line=True),
            score_direction=direction,
            **maps,
        )
        _keep(self, self._encoded())

    def _encoded(self):
        names = ("observation_space", "action_space", "metadata", "environment_parameters")
        return {name: public_bytes(getattr(self, name), "BenchmarkSpec." + name) for name in names}


@dataclass(frozen=True, init=False)
class EpisodeSpec(_Wired):
    """One planned Episode. The scenario is the Benchmark's own; a Policy never sees it."""

    environment_seed: int
    scenario: Any = None

    def __init__(self, environment_seed, scenario=None):
        seed = integer(environment_seed, "EpisodeSpec.environment_seed", 0, _values.U64_MAX)
        _set(self, environment_seed=seed, scenario=scenario)
        _keep(self, self._encoded())

    def _encoded(self):
        return private_bytes(self.scenario, "EpisodeSpec.scenario")

    seed = property(lambda self: self.environment_seed)


_STEP_METRICS = b"M" + (5).to_bytes(8, "big") + _values.key("metrics")
_STEP_OBSERVATION = _values.key("observation")
_STEP_REWARD = _values.key("reward") + b"F"
_STEP_ENDS = {
    (terminated, truncated): _values.key("terminated")
    + (b"B1" if terminated else b"B0")
    + _values.key("truncated")
    + (b"B1" if truncated else b"B0")
    for terminated in (False, True)
    for truncated in (False, True)
}


@dataclass(frozen=True, init=False)
class Step(_Wired):
    """What an Environment's step returns. `metrics` stay private to the Benchmark."""

    observation: Any
    reward: float
    terminated: bool = False
    truncated: bool = False
    metrics: Any = None

    def __init__(self, observation, reward, terminated=False, truncated=False, metrics=None):
        reward = finite(reward, "Step.reward")
        ends = _STEP_ENDS[boolean(terminated, "Step.terminated"), boolean(truncated, "Step.truncated")]
        seen = public_bytes(observation, "Step.observation")
        private = private_bytes(metrics, "Step.metrics", orders_of(observation))
        wire = b"".join((_STEP_METRICS, private, _STEP_OBSERVATION, seen, _STEP_REWARD, _double(reward), ends))
        fields = self.__dict__
        fields["observation"] = observation
        fields["reward"] = reward
        fields["terminated"] = terminated
        fields["truncated"] = truncated
        fields["metrics"] = metrics
        _keep(self, wire)

    def _encoded(self, initial=None):
        """The wire form; with `initial`, it also carries the orders of the initial observation."""
        ends = _STEP_ENDS[boolean(self.terminated, "Step.terminated"), boolean(self.truncated, "Step.truncated")]
        reward = _double(finite(self.reward, "Step.reward"))
        seen = public_bytes(self.observation, "Step.observation")
        private = private_bytes(self.metrics, "Step.metrics", orders_of(self.observation), initial)
        return b"".join((_STEP_METRICS, private, _STEP_OBSERVATION, seen, _STEP_REWARD, reward, ends))


@dataclass(frozen=True)
class Transition(_Telling):
    """One turn of an Episode: the Policy's Action and the Step that followed."""

    action: Any
    step: Step

    def __post_init__(self):
        if not isinstance(self.step, Step):
            raise TypeError("Transition.step must be a Step, not %s" % type(self.step).__name__)
        public_bytes(self.action, "Transition.action")

    observation = property(lambda self: self.step.observation)
    reward = property(lambda self: self.step.reward)
    terminated = property(lambda self: self.step.terminated)
    truncated = property(lambda self: self.step.truncated)
    metrics = property(lambda self: self.step.metrics)


def _failure(code):
    if code is None:
        return None
    if not isinstance(code, str):
        raise TypeError("EpisodeRecord.policy_failure must be a str or None, not %s" % type(code).__name__)
    return PolicyFailureCode(code)


@dataclass(frozen=True)
class EpisodeRecord(_Telling):
    """What happened in one Episode. A failed Policy's record ends with its last complete turn."""

    spec: EpisodeSpec
    policy_seed: int
    initial_observation: Any
    transitions: Tuple[Transition, ...] = ()
    policy_failure: Optional[str] = None

    def __post_init__(self):
        if not isinstance(self.spec, EpisodeSpec):
            raise TypeError("EpisodeRecord.spec must be an EpisodeSpec, not %s" % type(self.spec).__name__)
        integer(self.policy_seed, "EpisodeRecord.policy_seed", 0, _values.U64_MAX)
        transitions = tuple(self.transitions)
        for transition in transitions:
            if not isinstance(transition, Transition):
                raise TypeError("EpisodeRecord.transitions must hold Transitions, not %s" % type(transition).__name__)
        public_bytes(self.initial_observation, "EpisodeRecord.initial_observation")
        _set(self, transitions=transitions, policy_failure=_failure(self.policy_failure))

    # Other names for the same.
    episode = property(lambda self: self.spec)
    episode_spec = property(lambda self: self.spec)
    observation = property(lambda self: self.initial_observation)
    failure = property(lambda self: self.policy_failure)
    failed = property(lambda self: self.policy_failure is not None)
    environment_seed = property(lambda self: self.spec.environment_seed)
    scenario = property(lambda self: self.spec.scenario)
    failure_code = property(lambda self: self.policy_failure)
    status = property(lambda self: "completed" if self.policy_failure is None else "policy_failed")
    steps = property(lambda self: len(self.transitions))

    @property
    def total_reward(self):
        return sum((transition.step.reward for transition in self.transitions), 0.0)


@dataclass(frozen=True, init=False)
class Feedback(_Wired):
    """A score, what is told of it, and files that go with it."""

    score: float
    content: Any = None
    artifacts: Tuple[Artifact, ...] = ()

    def __init__(self, score, content=None, artifacts=()):
        if isinstance(artifacts, (str, bytes)):
            raise TypeError("Feedback.artifacts must be Artifacts, not %s" % type(artifacts).__name__)
        artifacts = tuple(artifacts)
        for artifact in artifacts:
            if not isinstance(artifact, Artifact):
                raise TypeError("Feedback.artifacts must hold Artifacts, not %s" % type(artifact).__name__)
        if len(artifacts) > MAX_ARTIFACTS:
            raise ValueError("Feedback.artifacts must be at most %d" % MAX_ARTIFACTS)
        if len({artifact.name for artifact in artifacts}) != len(artifacts):
            raise ValueError("Feedback.artifacts must have unique names")
        _set(self, score=finite(score, "Feedback.score"), content=content, artifacts=artifacts)
        _keep(self, self._encoded())

    def _encoded(self):
        return trusted_bytes(self.content, "Feedback.content", _values.CONTENT_LIMITS)


class _Interface(metaclass=ABCMeta):
    """May be subclassed and subscripted, and need not be: what has its methods counts as an instance."""

    @classmethod
    def __class_getitem__(cls, item):
        return cls

    @classmethod
    def __subclasshook__(cls, other):
        methods = _INTERFACES.get(cls)
        if methods and all(callable(getattr(other, name, None)) for name in methods):
            return True
        return NotImplemented


class Environment(_Interface):
    """One Episode's world: made fresh, reset once, stepped, closed on every exit path."""

    def reset(self) -> PolicyValue:
        raise NotImplementedError("%s has no reset()" % type(self).__name__)

    def step(self, action: PolicyValue) -> "Union[Step, InvalidAction]":
        raise NotImplementedError("%s has no step(action)" % type(self).__name__)

    def close(self) -> None:
        """Gives back what the Environment holds."""


class Benchmark(_Interface):
    """The base that a Benchmark may have. `spec` is an attribute or a property."""

    def episodes(self, split: str, seed: int, count: int) -> Sequence[EpisodeSpec]:
        raise NotImplementedError("%s has no episodes(split, seed, count)" % type(self).__name__)

    def make_environment(self, episode: EpisodeSpec) -> Environment:
        raise NotImplementedError("%s has no make_environment(episode)" % type(self).__name__)

    def feedback(self, records: Sequence[EpisodeRecord]) -> Feedback:
        raise NotImplementedError("%s has no feedback(records)" % type(self).__name__)


_INTERFACES = {Environment: ("reset", "step", "close"), Benchmark: ("episodes", "make_environment", "feedback")}


@dataclass(frozen=True)
class ConformanceIssue:
    """One rule that a Benchmark broke."""

    code: str
    message: str
    location: str = ""


@dataclass(frozen=True)
class ConformanceReport:
    """All that was found; true when nothing was."""

    issues: Tuple[ConformanceIssue, ...] = field(default=())

    def __post_init__(self):
        _set(self, issues=tuple(self.issues))

    ok = passed = conformant = property(lambda self: not self.issues)

    def __bool__(self):
        return not self.issues

    def raise_for_issues(self):
        if self.issues:
            raise AssertionError("; ".join("%s: %s" % (issue.code, issue.message) for issue in self.issues))


class BenchmarkFixture:
    """What a package gives to be tried out: a Benchmark (or what makes one) and Actions to replay, and whatever else it
    names: `split`, `seed`, `count`, `actions` (a list of Episodes, each a list of Actions), `program`, `baseline`."""

    def __init__(self, benchmark=None, actions=(), *others, **named):
        self.__dict__.update(named, benchmark=benchmark, actions=actions, others=others)

    def __repr__(self):
        return "BenchmarkFixture(%s)" % ", ".join("%s=%r" % item for item in self.__dict__.items())


def check_benchmark(benchmark, fixture=None, **named):
    """Replays Actions twice and reports what breaks the contract. `evopolicygym benchmark check` looks at more."""
    from ._conformance import check

    return check(benchmark, fixture, named)


def __getattr__(name):
    from . import _find

    return _find(name, __name__)
