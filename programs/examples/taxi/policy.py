"""A weak but valid Taxi Policy: any legal Action. It delivers only by luck."""

import random

from evopolicygym.policy import Policy, PolicyContext, PolicyValue


class AnyLegalAction(Policy):
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def act(self, observation: PolicyValue) -> PolicyValue:
        return self.random.choice(observation["legal_actions"])


def make_policy(context: PolicyContext) -> Policy:
    return AnyLegalAction(context.policy_seed)
