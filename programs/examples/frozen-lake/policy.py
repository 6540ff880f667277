"""A weak but valid FrozenLake Policy: down and right in turn, whatever the ice does."""

from evopolicygym.policy import Policy, PolicyContext, PolicyValue


class DownAndRight(Policy):
    def __init__(self) -> None:
        self.steps = 0

    def act(self, observation: PolicyValue) -> PolicyValue:
        self.steps += 1
        return 1 if self.steps % 2 else 2


def make_policy(context: PolicyContext) -> Policy:
    return DownAndRight()
