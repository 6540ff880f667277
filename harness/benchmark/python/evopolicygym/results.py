"""Results, as they are told to the public: an Episode's summary and an Evaluation's."""

from dataclasses import dataclass
from typing import Optional, Tuple

from .authoring import EpisodeRecord, Feedback, PolicyFailureCode

__all__ = ["EpisodeRecord", "EpisodeResult", "EpisodeSummary", "EvaluationResult", "Feedback", "PolicyFailureCode"]


@dataclass(frozen=True)
class EpisodeSummary:
    """Never a scenario, a seed or a path of the Host."""

    status: str
    reward: Optional[float]
    steps: int
    failure: Optional[str] = None

    def __post_init__(self):
        if self.status not in ("completed", "policy_failed"):
            raise ValueError("EpisodeSummary.status must be 'completed' or 'policy_failed'")


EpisodeResult = EpisodeSummary


@dataclass(frozen=True)
class EvaluationResult:
    feedback: Feedback
    episodes: Tuple[EpisodeSummary, ...] = ()

    score = property(lambda self: self.feedback.score)


def __getattr__(name):
    from . import _find

    return _find(name, __name__)
